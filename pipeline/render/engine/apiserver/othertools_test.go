// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/gate"
)

const filesOfOtherTools = `apiVersion: kind.x-k8s.io/v1alpha4
kind: Cluster
nodes: []
---
apiVersion: v1
kind: Config
clusters: []
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: a
---
apiVersion: checker.example/v1
kind: Task
metadata: {name: A Task, category: b}
---
apiVersion: v1beta1
kind: Deployment
metadata: {name: a}
`

// TestFilesOfOtherTools: a file that may be for another tool has no errors, unless all objects are for a cluster.
func TestFilesOfOtherTools(t *testing.T) {
	t.Parallel()
	for _, published := range []bool{false, true} {
		found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(filesOfOtherTools)), gate.Options{Published: published, SkipAdmission: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range found {
			got = append(got, string(r.Severity)+" "+r.ResourceRef.Kind+" "+r.Tags[result.TagCode])
		}
		level := "warning"
		if published {
			level = "error"
		}
		for _, want := range []string{
			"warning HostnameConfig schema-undescribed-kind", level + " Task schema-metadata", level + " Task schema-unknown-field",
			"error Deployment schema-unserved-kind",
		} {
			if !slices.Contains(got, want) {
				t.Errorf("published %t: missing %q in %q", published, want, got)
			}
		}
		if slices.ContainsFunc(found, func(r result.Result) bool {
			return slices.Contains([]string{"Cluster", "Config", "KubeletConfiguration"}, r.ResourceRef.Kind)
		}) {
			t.Errorf("published %t: findings about files that no cluster gets: %q", published, got)
		}
	}
}
