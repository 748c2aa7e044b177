// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
)

// proposing is a pipeline that publishes by pull request.
func proposing(name, publish string) string {
	return "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: " + name + ", namespace: team, labels: {cluster: eu/1}}\nspec:\n" +
		"  source: {git: {url: https://github.com/org/config, secretRef: {name: git}}}\n  publish:\n  - git: " + publish + "\n"
}

func TestPullRequestDefaults(t *testing.T) {
	for publish, want := range map[string]string{
		"{branch: main, pullRequest: {}}":                                                        "prerig/main/pipeline/team_shop",
		"{branch: env/prod, pullRequest: {groupBy: Namespace}}":                                  "prerig/env_prod/namespace/team",
		"{branch: env_prod, pullRequest: {groupBy: All}}":                                        "prerig/env_prod-",
		"{branch: main, path: apps/eu/shop, pullRequest: {groupBy: Directory}}":                  "prerig/main/directory/apps_eu",
		"{branch: main, pullRequest: {groupBy: Label, label: cluster}}":                          "prerig/main/label/cluster/eu_1",
		"{branch: main, pullRequest: {groupBy: SourceCommit}}":                                   "prerig/main/commit/0123456789ab",
		"{branch: main, pullRequest: {head: proposals}}":                                         "proposals",
		"{branch: main, pullRequest: {groupBy: All, provider: Gitea, secretRef: {name: other}}}": "prerig/main/all",
	} {
		pipeline, err := Parse([]byte(proposing("shop", publish)))
		if err != nil {
			t.Errorf("%s: %v", publish, err)
			continue
		}
		to := pipeline.Spec.Publish[0].Git.PullRequest
		if got := to.HeadFor("sha1:0123456789abcdef"); got != want && (!strings.HasSuffix(want, "-") || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: got %s", publish, got)
		}
		if to.SecretRef.Name != "git" && to.SecretRef.Name != "other" || to.Provider != "GitHub" && to.Provider != "Gitea" {
			t.Errorf("%s: got %+v", publish, to)
		}
	}
}

func TestPullRequestIsRefused(t *testing.T) {
	for publish, want := range map[string]string{
		"{branch: main, propose: {}, pullRequest: {}}":                                       "cannot be used with propose",
		"{branch: main, pullRequest: {groupBy: Team}}":                                       "groupBy: must be one of",
		"{branch: main, pullRequest: {groupBy: Label}}":                                      "label: must be given",
		"{branch: main, pullRequest: {groupBy: Label, label: region}}":                       "the pipeline has no label region",
		"{branch: main, pullRequest: {label: cluster}}":                                      "is for groupBy: Label",
		"{branch: main, pullRequest: {head: main}}":                                          "head: must be a branch with no other use",
		"{branch: main, pullRequest: {head: a..b}}":                                          "is not a valid name",
		"{branch: main, pullRequest: {url: 'https://me:pw@git.example.com'}}":                "without credentials",
		"{branch: main, url: 'https://git.example.com/o/r', pullRequest: {}}":                "provider: must be given",
		"{branch: main, url: 'https://git.example.com/o/r', pullRequest: {provider: Gitea}}": "secretRef: must be given",
		"{branch: main, pullRequest: {groupby: All}}":                                        "groupby",
	} {
		if _, err := Parse([]byte(proposing("shop", publish))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", publish, err)
		}
	}
}

func TestPartsOfABranchStayApart(t *testing.T) {
	texts := []string{"a", "a/b", "a_b", "a..b", "a b", "", ".", "..", "-a", "a.lock", "a.", "é", "è", strings.Repeat("x", 200), strings.Repeat("x", 201), "_none"}
	seen := map[string]string{}
	for _, text := range texts {
		part := refPart(text)
		if other, ok := seen[part]; ok {
			t.Errorf("%q and %q are both %s", text, other, part)
		}
		seen[part] = text
		v := &validator{}
		if v.addProblems("x", refProblems("prerig/"+part+"/y")); len(v.errs) > 0 || part == "" {
			t.Errorf("%q became %q: %v", text, part, v.errs)
		}
	}
}
