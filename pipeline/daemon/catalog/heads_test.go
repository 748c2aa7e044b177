// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/secret/tenant"
)

func pullRequest(more string) string {
	return ", pullRequest: {provider: Gitea, secretRef: {name: bot}" + more + "}"
}

// openWith reads two pipelines, at once or the second one later, and returns what is wrong with each.
func openWith(t *testing.T, later bool, rules Rules, first, second string) (errFirst, errSecond error) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"shop/a.yaml": first}
	if !later {
		files["evil/b.yaml"] = second
	}
	write(t, dir, files)
	c, err := Open(dir, nil, WithRules(rules))
	if err != nil {
		t.Fatal(err)
	}
	if later {
		write(t, dir, map[string]string{"evil/b.yaml": second})
		if _, err := c.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range c.All() {
		switch {
		case strings.HasSuffix(e.Key, "shop/a"):
			errFirst = e.Err
		case strings.HasSuffix(e.Key, "b"):
			errSecond = e.Err
		}
	}
	return errFirst, errSecond
}

// A branch is never the head of another's pull requests, a directory of it, or in it, whatever the order in which they come.
func TestBranchesInTheWayOfHeadsAreRefused(t *testing.T) {
	const out = "https://h/out.git"
	withHead := publishing("shop", "a", out, "rendered", "a", pullRequest(", head: shop/review"))
	byDefault := publishing("shop", "a", out, "rendered", "a", pullRequest(""))
	for name, tc := range map[string]struct{ first, second string }{
		"a head that is named":              {withHead, publishing("evil", "b", out, "shop/review", "b", "")},
		"above a head":                      {withHead, publishing("evil", "b", out, "shop", "b", "")},
		"below a head":                      {withHead, publishing("evil", "b", out, "shop/review/x", "b", "")},
		"in capitals":                       {withHead, publishing("evil", "b", out, "Shop/Review", "b", "")},
		"by another URL":                    {withHead, publishing("evil", "b", "git@h:out", "shop/review", "b", "")},
		"as the base of pull requests":      {withHead, publishing("evil", "b", out, "shop/review", "b", pullRequest(", head: other"))},
		"where all heads are":               {byDefault, publishing("evil", "b", out, "prerig", "b", "")},
		"where all heads are, in capitals":  {byDefault, publishing("evil", "b", out, "PRERIG", "b", "")},
		"a default head":                    {byDefault, publishing("evil", "b", out, "prerig/rendered/pipeline/shop_a", "b", "")},
		"beside a default head":             {byDefault, publishing("evil", "b", out, "prerig/x", "b", "")},
		"a proposed branch":                 {withHead, publishing("evil", "b", out, "shop/review", "b", ", propose: {}")},
		"a head for each commit":            {publishing("shop", "a", out, "rendered", "a", pullRequest(", groupBy: SourceCommit, head: by")), publishing("evil", "b", out, "by/0123456789ab", "b", "")},
		"a head above a branch, by a group": {byDefault, publishing("evil", "b", out, "rendered", "b", pullRequest(", groupBy: All, head: prerig/rendered"))},
		"a head above defaults":             {byDefault, publishing("evil", "b", out, "rendered", "b", pullRequest(", groupBy: All, head: prerig"))},
	} {
		for _, later := range []bool{false, true} {
			first, second := openWith(t, later, Rules{}, tc.first, tc.second)
			if first != nil {
				t.Errorf("%s, later %t: the one whose head it is: %v", name, later, first)
			}
			if second == nil || strings.Contains(second.Error(), "shop/a") {
				t.Errorf("%s, later %t: %v", name, later, second)
			}
		}
	}
}

// A head that somebody names is no way to take a branch from those who publish to it, or read it.
func TestHeadsTakeNoBranchesOfOthers(t *testing.T) {
	const out = "https://h/out.git"
	branch := publishing("shop", "a", out, "env/live", "a", "")
	for _, there := range []string{branch, publishing("shop", "a", out, "rendered", "a", pullRequest(", head: env/live"))} {
		for _, head := range []string{"env/live", "ENV/Live", "env", "env/live/x"} {
			first, second := openWith(t, true, Rules{}, there, publishing("evil", "b", out, "rendered", "b", pullRequest(", head: "+head)))
			if first != nil || second == nil {
				t.Errorf("%s: %v, %v", head, first, second)
			}
		}
	}
	first, second := openWith(t, true, Rules{}, branch, publishing("evil", "b", "https://h/apps", "rendered", "b", pullRequest(", head: main")))
	if first != nil || second == nil {
		t.Errorf("the branch of a source: %v, %v", first, second)
	}
	first, second = openWith(t, true, Rules{}, branch, publishing("evil", "b", out, "env/other", "b", pullRequest("")))
	if first != nil || second != nil {
		t.Errorf("branches that have nothing to do with each other: %v, %v", first, second)
	}
}

// What is asked about a pull request of several namespaces is asked at one API, and tenants do not share one.
func TestSharedGroupsHaveOneAPIAndOneTenant(t *testing.T) {
	const out = "https://h/out.git"
	pipeline := func(namespace, name, wave, more string) string {
		text := publishing(namespace, name, out, "rendered", name, pullRequest(", groupBy: Label, label: wave, "+more))
		return strings.Replace(text, "namespace: "+namespace+"}", "namespace: "+namespace+", labels: {wave: "+wave+"}}", 1)
	}
	const waves = "waves: {order: [dev, prod]}"
	tenants := Rules{Tenants: []tenant.Tenant{{Directory: "shop", Namespaces: []string{"shop"}}, {Directory: "evil", Namespaces: []string{"evil"}}}}
	one := Rules{Tenants: []tenant.Tenant{{Directory: ".", Namespaces: []string{"shop", "evil"}}}}
	for name, tc := range map[string]struct {
		rules         Rules
		first, second string
		want          string
	}{
		"one API":                   {Rules{}, pipeline("shop", "a", "dev", waves), pipeline("evil", "b", "dev", waves), ""},
		"the same API, written out": {Rules{}, pipeline("shop", "a", "dev", waves), pipeline("evil", "b", "dev", "url: https://h/api/v1, "+waves), ""},
		"another API":               {Rules{}, pipeline("shop", "a", "dev", waves), pipeline("evil", "b", "dev", "url: https://evil.example.net/api, "+waves), "pullRequest.url"},
		"another API, in another wave": {
			Rules{}, pipeline("shop", "a", "prod", waves), pipeline("evil", "b", "dev", "url: https://evil.example.net/api, "+waves), "pullRequest.url",
		},
		"another API, in another order": {
			Rules{}, pipeline("shop", "a", "dev", waves), pipeline("evil", "b", "dev", "url: https://evil.example.net/api, waves: {order: [dev, x]}"), "pullRequest.url",
		},
		"two tenants":                {tenants, pipeline("shop", "a", "dev", waves), pipeline("evil", "b", "dev", waves), "another tenant"},
		"two tenants in other waves": {tenants, pipeline("shop", "a", "prod", waves), pipeline("evil", "b", "dev", waves), "another tenant"},
		"two namespaces of a tenant": {one, pipeline("shop", "a", "dev", waves), pipeline("evil", "b", "dev", waves), ""},
		"another repository": {
			tenants, pipeline("shop", "a", "dev", waves), strings.Replace(pipeline("evil", "b", "dev", waves), out, "https://h/other.git", 1), "",
		},
	} {
		first, second := openWith(t, true, tc.rules, tc.first, tc.second)
		if first != nil {
			t.Errorf("%s: the one that was there: %v", name, first)
		}
		if tc.want == "" && second != nil || tc.want != "" && (second == nil || !strings.Contains(second.Error(), tc.want)) {
			t.Errorf("%s: %v", name, second)
		}
	}
}
