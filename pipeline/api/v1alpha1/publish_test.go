// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
	"testing"
)

func TestTarget(t *testing.T) {
	for want, to := range map[string]Publish{
		"https://h/r.git rendered shop":   {Git: &GitPublish{URL: "https://h/r.git", Branch: "rendered", Path: "shop"}},
		"https://h/r.git env-next ":       {Git: &GitPublish{URL: "https://h/r.git", Branch: "env", Propose: &Propose{}}},
		"https://h/r.git env-next/east .": {Git: &GitPublish{URL: "https://h/r.git", Branch: "env", Path: ".", Propose: &Propose{ActivePath: "east"}}},
		"oci://h/r:latest":                {OCI: &OCIPublish{URL: "oci://h/r"}},
		"oci://h/r:v1":                    {OCI: &OCIPublish{URL: "oci://h/r", Tags: []string{"v1", "latest"}}},
	} {
		if got := to.Target(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNamesThatGitCannotCheckOutAreInvalid has names for what is written that git refuses, or that are another's on some system.
func TestNamesThatGitCannotCheckOutAreInvalid(t *testing.T) {
	const text = "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: a}\nspec:\n  source: {git: {url: https://h/apps.git}}\n  publish: [{git: %s}]\n"
	for entry, field := range map[string]string{
		`{branch: rendered, path: "x/.git::$INDEX_ALLOCATION/x"}`:       "git.path",
		`{branch: rendered, path: x/GIT~1/y}`:                           "git.path",
		`{branch: rendered, path: "x/.git /y"}`:                         "git.path",
		`{branch: rendered, path: x/.GIT/hooks}`:                        "git.path",
		`{branch: rendered, path: "x/.g\u200cit"}`:                      "git.path",
		`{branch: rendered, path: "a\u202eb"}`:                          "git.path",
		`{branch: rendered, path: "a\eb"}`:                              "git.path",
		`{branch: rendered, path: "a\u0308"}`:                           "git.path",
		`{branch: rendered, path: .PRERIG/pipelines}`:                   "git.path",
		`{branch: rendered, path: aux}`:                                 "git.path",
		`{branch: rendered, path: shop., propose: {activePath: shop.}}`: "git.path",
		`{branch: rendered, propose: {activePath: "a b"}}`:              "git.propose.activePath",
		`{branch: refs/heads/rendered}`:                                 "git.branch",
		`{branch: heads/rendered}`:                                      "git.branch",
		`{branch: HEAD}`:                                                "git.branch",
		`{branch: a/.b}`:                                                "git.branch",
		`{branch: a.lock/b}`:                                            "git.branch",
		`{branch: "a\u200bb"}`:                                          "git.branch",
		`{branch: prerig}`:                                              "git.branch",
		`{branch: prerig/rendered/pipeline/x}`:                          "git.branch",
		`{branch: PRERIG/x}`:                                            "git.branch",
		`{branch: rendered, pullRequest: {provider: Gitea, secretRef: {name: bot}, head: heads/x}}`: "git.pullRequest.head",
		`{branch: rendered, author: {name: "a\u202eb", email: a@b}}`:                                "git.author",
	} {
		_, err := Parse(fmt.Appendf(nil, text, entry))
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
