// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

func TestChartLockRoundTrip(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	lock := v1alpha1.NewChartLock(v1alpha1.ChartLockSpec{Charts: []v1alpha1.LockedChart{
		{Name: "web", Repository: "oci://registry.example.com/charts", Range: "*", Version: "1.0.0+a", Digest: digest},
		{Name: "db", Repository: "https://charts.example.com", Range: "^1.0", Version: "v1.2", Digest: digest, URL: "https://charts.example.com/db-1.2.tgz"},
		{Name: "db", Repository: "https://charts.example.com", Version: "2.0.0", Digest: digest, URL: "https://charts.example.com/db-2.0.0.tgz"},
	}})
	data, err := v1alpha1.MarshalChartLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: prerig.dev/v1alpha1
kind: ChartLock
metadata:
  name: charts
  annotations:
    config.kubernetes.io/local-config: "true"
spec:
  charts:
  - name: db
    repository: https://charts.example.com
    version: 2.0.0
    digest: ` + digest + `
    url: https://charts.example.com/db-2.0.0.tgz
  - name: db
    repository: https://charts.example.com
    range: ^1.0
    version: v1.2
    digest: ` + digest + `
    url: https://charts.example.com/db-1.2.tgz
  - name: web
    repository: oci://registry.example.com/charts
    range: '*'
    version: 1.0.0+a
    digest: ` + digest + `
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	back, err := v1alpha1.ParseChartLock(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lock, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if found := back.Find("https://CHARTS.example.com/", "db", ""); found == nil || found.Version != "2.0.0" {
		t.Errorf("found %v", found)
	}
	if found := back.Find("https://charts.example.com", "db", "^1"); found != nil {
		t.Errorf("found %v", found)
	}
}

func TestChartLockProblems(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	entry := func(fields string) string {
		return "apiVersion: prerig.dev/v1alpha1\nkind: ChartLock\nmetadata: {name: charts}\nspec:\n  charts:\n  - {" + fields + "}\n"
	}
	good := "name: web, repository: \"https://charts.example.com\", version: 1.0.0, digest: \"" + digest + "\", url: \"https://charts.example.com/web.tgz\""
	if _, err := v1alpha1.ParseChartLock([]byte(entry(good))); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		entry(good + ", uri: x"):                                                                        "uri",
		entry(strings.Replace(good, "web,", "../web,", 1)):                                              `"../web" is not the name of a chart`,
		entry(strings.Replace(good, "1.0.0", "'../1'", 1)):                                              `"../1" is not a version`,
		entry(strings.Replace(good, "sha256", "md5", 1)):                                                "is not a digest",
		entry(strings.Replace(good, "https://charts.", "ftp://charts.", 1)):                             "must be a URL with https://, http:// or oci://",
		entry(strings.Replace(good, "//charts.", "//a:b@charts.", 1)):                                   "must have no credentials",
		entry(strings.Replace(good, "com\"", "com/../x\"", 1)):                                          "no . or .. in its path",
		entry(strings.Replace(good, "https://charts.example.com/web", "x", 1)):                          "must be the URL of the chart's archive",
		entry(strings.Replace(good, "https://charts.example.com\"", "oci://charts.example.com/a\"", 1)): "must be omitted: the repository is in a registry",
		strings.Replace(entry(good), "ChartLock", "ImageLock", 1):                                       "expected prerig.dev/v1alpha1 ChartLock",
		entry(good) + "  - {" + good + "}\n":                                                            "spec.charts[0] locks the same chart for the same range",
		strings.Replace(entry(good), "metadata:", "metadata: &a", 1) + "x: *a\n":                        "line",
	} {
		if _, err := v1alpha1.ParseChartLock([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestChartRepositoryCovers(t *testing.T) {
	for _, test := range []struct {
		allowed, url string
		want         bool
	}{
		{"https://charts.example.com", "https://charts.example.com/", true},
		{"https://charts.example.com", "https://charts.example.com/other", false},
		{"https://charts.example.com", "http://charts.example.com", false},
		{"https://charts.example.com/*", "https://charts.example.com/other", true},
		{"oci://r.example.com/team/*", "oci://r.example.com/team-two/x", false},
		{"oci://r.example.com/team/*", "oci://R.example.com/team/x", true},
		{"oci://r.example.com/team/*", "oci://r.example.com/Team/x", false},
	} {
		if got := (v1alpha1.ChartRepository{URL: test.allowed}).Covers(test.url); got != test.want {
			t.Errorf("%s covers %s: %t", test.allowed, test.url, got)
		}
	}
}

// What a pipeline says of repositories that cannot be.
func TestChartRepositoryProblems(t *testing.T) {
	pipeline := func(build string) string {
		return "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web}\nspec:\n  source: {git: {url: \"https://git.example.com/a/b.git\"}}\n  build:\n    helm: {" + build +
			"namespace: shop, kubeVersion: 1.33.4}\n  publish: [{git: {branch: rendered}}]\n"
	}
	list := func(entry string) string {
		return strings.Replace(pipeline("chart: web, "), "    helm:", "    chartRepositories: ["+entry+"]\n    helm:", 1)
	}
	for text, want := range map[string]string{
		pipeline("chart: web, version: 1.0.0, "):                                                                    "is for charts of a repository",
		pipeline("chart: a/web, repository: \"https://charts.example.com\", "):                                      "must be the name of a chart in the repository",
		pipeline("chart: web, repository: \"https://a:b@charts.example.com\", "):                                    "must have no credentials",
		pipeline("chart: web, repository: \"oci://charts.example.com\", "):                                          "must name a path in the registry",
		list("{url: \"https://charts.example.com\", insecure: true}"):                                               "is for registries",
		list("{url: \"https://charts.example.com\", secretRef: {}}"):                                                "secretRef.name: must be given",
		list("{url: \"https://charts.example.com\"}, {url: \"https://charts.example.com/\"}"):                       "is given twice",
		strings.Replace(list("{url: \"https://c.example.com\"}"), "    helm:", "    chartLock: ../x\n    helm:", 1): "must not leave the tree",
	} {
		if _, err := v1alpha1.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if _, err := v1alpha1.Parse([]byte(pipeline("chart: web, repository: \"oci://charts.example.com/a\", version: ^1, "))); err != nil {
		t.Error(err)
	}
}
