// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeveralRepositoriesOfPipelines(t *testing.T) {
	c, warnings, err := load(t, `pipelines_git:
- {name: shop, url: https://h/shop, namespaces: [shop], sources: [https://h/shop/*], interval: 30s}
- {name: pay, url: git@h:pay, path: pipelines, namespaces: [pay, till]}
`)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := []PipelinesGit{
		{Name: "shop", URL: "https://h/shop", Namespaces: []string{"shop"}, Sources: []string{"https://h/shop/*"}, Interval: 30 * time.Second},
		{Name: "pay", URL: "git@h:pay", Path: "pipelines", Namespaces: []string{"pay", "till"}, Interval: time.Minute},
	}
	if diff := cmp.Diff(want, c.Repositories()); diff != "" || c.Pipelines != "" || c.PipelinesName() != "pipelines" {
		t.Errorf("the directory %q is called %q: %s", c.Pipelines, c.PipelinesName(), diff)
	}
	if c, _, err = load(t, "pipelines_git: {url: https://h/p}\n"); err != nil || len(c.Repositories()) != 1 || c.Repositories()[0].Name != "" {
		t.Errorf("one as a map: %+v, %v", c, err)
	}
	bound, err := c.Repositories()[0].ParsedTenants()
	if err != nil || bound != nil {
		t.Errorf("one that is bound to nothing: %v, %v", bound, err)
	}
	if c, _, err = load(t, `pipelines: p
tenants: [{directory: team, namespaces: [team]}]
pipelines_git: [{name: shop, url: https://h/shop, namespaces: [shop]}]
`); err != nil || c.Pipelines == "" || len(c.Repositories()) != 1 {
		t.Errorf("one beside a directory: %+v, %v", c, err)
	}
}

func TestRepositoriesOfPipelinesThatAreRefused(t *testing.T) {
	const shop = "{name: shop, url: https://h/shop, namespaces: [shop]}"
	for name, tc := range map[string]struct{ text, want string }{
		"unknown key":              {"pipelines_git: [{urll: https://h/p}]\n", "line 1: pipelines_git[0].urll: unknown field"},
		"a wrong type":             {"pipelines_git:\n- {url: https://h/p, interval: soon}\n", "line 2: pipelines_git[0].interval"},
		"no URL":                   {"pipelines_git: [{branch: main}]\n", "pipelines_git[0].url: must be given"},
		"no name":                  {"pipelines_git: [" + shop + ", {url: https://h/pay, namespaces: [pay]}]\n", "pipelines_git[1].name: must be given"},
		"the same name":            {"pipelines_git: [" + shop + ", {name: shop, url: https://h/pay, namespaces: [pay]}]\n", "pipelines_git[1].name: must be given"},
		"the directory's name":     {"pipelines_git: [" + shop + ", {name: pipelines, url: https://h/pay, namespaces: [pay]}]\n", "pipelines_git[1].name: must be given"},
		"a name with a slash":      {"pipelines_git: [{name: a/b, url: https://h/p}]\n", "pipelines_git[0].name: must be of small letters"},
		"no namespaces":            {"pipelines_git: [" + shop + ", {name: pay, url: https://h/pay}]\n", "pipelines_git[1].namespaces: must be given"},
		"the same namespace":       {"pipelines_git: [" + shop + ", {name: pay, url: https://h/pay, namespaces: [pay, shop]}]\n", "pipelines_git[1].namespaces: shop is of pipelines_git[0] already"},
		"that of a tenant":         {"pipelines: p\ntenants: [{directory: d, namespaces: [shop]}]\npipelines_git: [" + shop + "]\n", "shop is of tenants[0] already"},
		"beside a directory":       {"pipelines: p\npipelines_git: [" + shop + "]\n", "configuration pipelines: must not be given together"},
		"tenants without one":      {"tenants: [{directory: d, namespaces: [d]}]\npipelines_git: [" + shop + ", {name: pay, url: https://h/pay, namespaces: [pay]}]\n", "configuration tenants: are for directories"},
		"tenants and namespaces":   {"tenants: [{directory: d, namespaces: [d]}]\npipelines_git: " + shop + "\n", "configuration tenants: must not be given together"},
		"limits without a bound":   {"pipelines_git: {url: https://h/p, sources: [https://h/p]}\n", "pipelines_git.namespaces: must be given"},
		"an odd pattern":           {"pipelines_git: {url: https://h/p, namespaces: [a], sources: [https://*.h/p]}\n", "sources[0]"},
		"credentials in a list":    {"pipelines_git: [{url: https://u:s3cr3t@h/p}]\n", "configuration pipelines_git[0].url: must start with"},
		"two kinds of keys, twice": {"pipelines_git: [" + shop + "]\nPipelines_Git: {url: https://h/p}\n", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := load(t, tc.text); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Setenv("PRERIG_PIPELINES_GIT_URL", "https://h/p")
	if _, _, err := loadHere(t, "pipelines_git: ["+shop+"]\n"); err == nil || !strings.Contains(err.Error(), "must not be given by flags or variables") {
		t.Errorf("with a variable: %v", err)
	}
}
