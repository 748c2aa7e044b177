// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/event"
)

// TestPushesToBranchesOfPullRequestsAreWatched has a merge, which is a push to the base, reach the pipelines whose results waited.
func TestPushesToBranchesOfPullRequestsAreWatched(t *testing.T) {
	dir := t.TempDir()
	for name, groupBy := range map[string]string{"a": "Pipeline", "b": "SourceCommit", "c": ""} {
		publish := "{url: https://git.example.com/org/deploy, branch: prod}"
		if groupBy != "" {
			publish = "{url: https://git.example.com/org/deploy, branch: prod, pullRequest: {provider: Gitea, secretRef: {name: bot}, groupBy: " + groupBy + "}}"
		}
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s}\nspec:\n  source: {git: {url: https://git.example.com/org/config}}\n  publish: [{git: %s}]\n", name, publish)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"refs/heads/prod": "a b", "refs/heads/prerig/prod/pipeline/a": "a", "refs/heads/prerig/prod/commit/0123456789ab": "b",
		"refs/heads/prerig/prod/commit": "", "refs/heads/main": "", "refs/tags/prod": "",
	} {
		changes := []event.Change{{Git: &event.GitChange{URLs: []string{"git@git.example.com:org/deploy.git"}, Ref: ref}}}
		if got := strings.Join(c.MatchProposed(changes), " "); got != want {
			t.Errorf("%s: got %q, want %q", ref, got, want)
		}
		if c.Watches(changes) != (want != "") {
			t.Errorf("%s: watched is %v", ref, want == "")
		}
	}
	for _, test := range []struct {
		pull event.PullChange
		want string
	}{
		{event.PullChange{Head: "prerig/prod/pipeline/a", Base: "prod", Decided: true}, "a"},
		{event.PullChange{Head: "prerig/prod/commit/0123", Base: "prod", Decided: true}, "b"},
		{event.PullChange{Head: "of-a-person", Base: "prod", Decided: true}, ""},
		{event.PullChange{Base: "prod", Decided: true}, "a b"},
		{event.PullChange{Head: "prerig/prod/pipeline/a", Base: "prod"}, ""}, // Prerig has opened it, or pushed to it
	} {
		test.pull.URLs, test.pull.Number = []string{"https://git.example.com/org/deploy"}, 1
		if got := strings.Join(c.MatchProposed([]event.Change{{Pull: &test.pull}}), " "); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.pull, got, test.want)
		}
	}
}
