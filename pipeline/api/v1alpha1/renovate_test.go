// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fnapi "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestRenovateReadsLocks holds the expressions of docs/ci.md against locks as the commands write them. Renovate's expressions are
// those of RE2, as Go's are.
func TestRenovateReadsLocks(t *testing.T) {
	digest := func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
	images, err := fnapi.MarshalImageLock(fnapi.NewImageLock("mesh", []fnapi.LockedImage{
		{Image: "docker.io/istio/proxyv2:1.31.0", Digest: digest("a"), Platforms: []string{"linux/amd64"}},
		{Image: "registry.example.com:5000/fluent/fluent-bit:4.0", Digest: digest("b")},
		{Image: "registry.example.com:5000/untagged", Digest: digest("c")},
	}))
	if err != nil {
		t.Fatal(err)
	}
	charts, err := v1alpha1.MarshalChartLock(v1alpha1.NewChartLock(v1alpha1.ChartLockSpec{Charts: []v1alpha1.LockedChart{
		{Name: "db", Repository: "https://charts.example.com", Range: "^1.0", Version: "1.2.0", Digest: digest("a"), URL: "https://charts.example.com/db.tgz"},
		{Name: "db", Repository: "https://charts.example.com", Range: "2.0.0", Version: "2.0.0", Digest: digest("b"), URL: "https://charts.example.com/db2.tgz"},
		{Name: "web", Repository: "oci://registry.example.com/charts", Range: "*", Version: "1.0.0", Digest: digest("c")},
		{Name: "api", Repository: "oci://registry.example.com/charts", Range: ">=1 <2", Version: "1.1.0", Digest: digest("d")},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	locked := []string{
		"docker depName=docker.io/istio/proxyv2 currentValue=1.31.0 currentDigest=" + digest("a"),
		"docker depName=registry.example.com:5000/fluent/fluent-bit currentValue=4.0 currentDigest=" + digest("b"),
	}
	want := map[string][]string{
		"k8s/imagelock.yaml": locked, // as prerig images pin names it by itself
		"images.lock.yaml":   locked,
		"apps/charts.lock.yaml": {
			"helm depName=db registryUrl=https://charts.example.com currentValue=1.2.0",
			"docker depName=api place=registry.example.com/charts currentValue=1.1.0",
			"docker depName=web place=registry.example.com/charts currentValue=1.0.0",
		},
		"apps/other.yaml": nil,
	}
	texts := map[string]string{"k8s/imagelock.yaml": string(images), "images.lock.yaml": string(images), "apps/charts.lock.yaml": string(charts), "apps/other.yaml": string(images)}
	for name, text := range texts {
		if diff := cmp.Diff(want[name], dependencies(t, name, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", name, diff, text)
		}
	}
}

// dependencies are what the managers of docs/ci.md find in a file.
func dependencies(t *testing.T, name, text string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```json\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatal("docs/ci.md has no configuration")
	}
	var config struct {
		CustomManagers []struct {
			ManagerFilePatterns, MatchStrings []string
			DatasourceTemplate                string
		}
	}
	if err := json.Unmarshal([]byte(block), &config); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, manager := range config.CustomManagers {
		if file := strings.Trim(manager.ManagerFilePatterns[0], "/"); !regexp.MustCompile(file).MatchString(name) {
			continue
		}
		expression := regexp.MustCompile(manager.MatchStrings[0])
		for _, match := range expression.FindAllStringSubmatch(text, -1) {
			line := manager.DatasourceTemplate
			for i, group := range expression.SubexpNames()[1:] {
				line += " " + group + "=" + match[i+1]
			}
			out = append(out, line)
		}
	}
	return out
}
