// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

func TestApplicationsAndPipelines(t *testing.T) {
	all, err := v1alpha1.ParseAll([]byte(pipelineFiles(3, "http://127.0.0.1/x.git")["apps.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || all[2].Spec.Build.Path != "apps/app-0002" {
		t.Errorf("got %d pipelines", len(all))
	}
	for _, set := range []map[string]string{appFiles("a", "1"), policyFiles("1.29.0")} {
		for name, text := range set {
			for doc := range strings.SplitSeq(text, "---\n") {
				var object map[string]any
				if err := yaml.UnmarshalStrict([]byte(doc), &object); err != nil || object["kind"] == nil || strings.Contains(doc, "%!") {
					t.Errorf("%s: %v\n%s", name, err, doc)
				}
			}
		}
	}
}

func TestPeak(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system has no /proc")
	}
	if n, all := peakMemory(os.Getpid()), familyMemory(os.Getpid()); n < 1<<20 || all < 1<<20 {
		t.Errorf("this process has %d bytes, with its children %d", n, all)
	}
}
