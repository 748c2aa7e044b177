// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// publishing returns a pipeline that publishes to a branch.
func publishing(namespace, name, url, branch, path, more string) string {
	return fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: %s}\nspec:\n"+
		"  source: {git: {url: https://h/apps, ref: {branch: main}}}\n  publish:\n  - git: {url: %s, branch: %s, path: %s%s}\n",
		name, namespace, url, branch, path, more)
}

// TestHeadsOfOtherNamespaces has a pipeline name the head of another one's pull requests.
func TestHeadsOfOtherNamespaces(t *testing.T) {
	request := func(more string) string {
		return ", pullRequest: {provider: Gitea, secretRef: {name: bot}" + more + "}"
	}
	for name, tc := range map[string]struct {
		first, second, namespace string
		refused                  bool
	}{
		"a pipeline's":                        {request(""), request(", head: prerig/rendered/pipeline/team_a"), "evil", true},
		"a namespace's":                       {request(", groupBy: Namespace"), request(", head: prerig/rendered/namespace/team"), "evil", true},
		"of the same namespace":               {request(""), request(", head: prerig/rendered/pipeline/team_a"), "team", false},
		"one that both name":                  {request(", head: prerig/ours"), request(", head: prerig/ours"), "evil", true},
		"one that both name in one namespace": {request(", head: prerig/ours"), request(", head: prerig/ours"), "team", false},
		"that of all":                         {request(", groupBy: All"), request(", head: prerig/rendered/all"), "evil", true},
		"that of all, as one of them":         {request(", groupBy: All"), request(", groupBy: All"), "evil", false},
		"the default":                         {request(""), request(""), "evil", false},
		"of a pipeline with another head now": {request(", head: prerig/ours"), request(", head: prerig/rendered/pipeline/team_a"), "evil", false},
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"a.yaml": publishing("team", "a", "https://h/out.git", "rendered", "a", tc.first)})
		c, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, map[string]string{"b.yaml": publishing(tc.namespace, "aa", "git@h:out", "rendered", "b", tc.second)})
		if _, err := c.Reload(); err != nil {
			t.Fatal(err)
		}
		if e, _ := c.Get("team/a"); e.Err != nil {
			t.Errorf("%s: the one that is named: %v", name, e.Err)
		}
		e, _ := c.Get(tc.namespace + "/aa")
		if (e.Err != nil) != tc.refused || tc.refused && (!strings.Contains(e.Err.Error(), "pullRequest.head") || strings.Contains(e.Err.Error(), "team/a")) {
			t.Errorf("%s: %v", name, e.Err)
		}
	}
}

// A path on a branch belongs to the pipeline that had it first; who comes later is refused, and nothing changes for the first.
func TestPathsBelongToOnePipeline(t *testing.T) {
	first := publishing("team", "a", "https://h/out.git", "rendered", "a", "")
	for name, tc := range map[string]struct{ second, want string }{
		"the same path":                  {publishing("evil", "aa", "https://h/out.git", "rendered", "a", ""), "spec.publish[0].git.path"},
		"with adopt":                     {publishing("evil", "aa", "https://h/out.git", "rendered", "a", ", adopt: true"), "spec.publish[0].git.path"},
		"a path inside":                  {publishing("evil", "aa", "https://h/out.git", "rendered", "a/shop/deep", ""), "spec.publish[0].git.path"},
		"written in another way":         {publishing("evil", "aa", "git@h:out", "rendered", "./a/../a", ""), "spec.publish[0].git.path"},
		"a path beside":                  {publishing("evil", "aa", "https://h/out.git", "rendered", "ab", ""), ""},
		"another branch":                 {publishing("evil", "aa", "https://h/out.git", "other", "a", ""), ""},
		"another repository":             {publishing("evil", "aa", "https://h/out2.git", "rendered", "a", ""), ""},
		"the branch that somebody reads": {publishing("evil", "aa", "https://h/apps", "main", "x", ", adopt: true"), "spec.publish[0].git"},
		"what the host acts upon":        {publishing("evil", "aa", "https://h/out.git", "rendered", ".github/workflows", ""), "which Git hosts act upon"},
		"in capitals":                    {publishing("evil", "aa", "https://h/out.git", "rendered", ".GitLab-CI.yml", ""), "which Git hosts act upon"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"z.yaml": first})
			c, err := Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, map[string]string{"b.yaml": tc.second})
			if _, err := c.Reload(); err != nil {
				t.Fatal(err)
			}
			if e, _ := c.Get("team/a"); e.Err != nil {
				t.Errorf("the first one: %v", e.Err)
			}
			e, _ := c.Get("evil/aa")
			if tc.want == "" && e.Err != nil || tc.want != "" && (e.Err == nil || !strings.Contains(e.Err.Error(), tc.want)) {
				t.Errorf("the second one: %v", e.Err)
			}
			if e.Err != nil && strings.Contains(e.Err.Error(), "team/a") {
				t.Errorf("it tells of a pipeline of another namespace: %v", e.Err)
			}
		})
	}
}

// After a restart the one that was registered has it, whatever the names, and a directory around it is refused as one inside.
func TestPathsBelongToWhoWasRegistered(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.yaml": publishing("evil", "aa", "https://h/out.git", "rendered", "teams", ""),
		"b.yaml": publishing("team", "x", "https://h/out.git", "rendered", "teams/x", ""),
	})
	registered := func(pipeline string) []v1alpha1.Publish {
		if pipeline != "team/x" {
			return nil
		}
		return []v1alpha1.Publish{{Git: &v1alpha1.GitPublish{URL: "https://h/out", Branch: "rendered", Path: "teams/x"}}}
	}
	c, err := Open(dir, nil, WithRules(Rules{Registered: registered}))
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := c.Get("team/x"); e.Err != nil {
		t.Errorf("who was registered: %v", e.Err)
	}
	if e, _ := c.Get("evil/aa"); e.Err == nil || !strings.Contains(e.Err.Error(), "teams of branch rendered") {
		t.Errorf("who comes later: %v", e.Err)
	}
	// When the first one goes, the place is free.
	write(t, dir, map[string]string{"b.yaml": "# gone"})
	if _, err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if e, _ := c.Get("evil/aa"); e.Err != nil {
		t.Errorf("after the first one has gone: %v", e.Err)
	}
}

// Nobody stops another's pipeline by beginning to read the branch that it writes.
func TestReadingABranchStopsNobody(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.yaml": publishing("team", "a", "https://h/out.git", "main", "a", ", adopt: true")})
	c, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"b.yaml": strings.Replace(publishing("evil", "b", "https://h/x.git", "r", "b", ""), "https://h/apps", "https://h/out.git", 1)})
	if _, err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"team/a", "evil/b"} {
		if e, _ := c.Get(key); e.Err != nil {
			t.Errorf("%s: %v", key, e.Err)
		}
	}
}

func TestTagsBelongToOnePipeline(t *testing.T) {
	tagged := func(name, tags string) string {
		return fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: t}\nspec:\n"+
			"  source: {git: {url: https://h/apps}}\n  publish:\n  - oci: {url: \"oci://registry.example.com/out\", tags: [%s]}\n", name, tags)
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.yaml": tagged("a", "v1, stable"), "b.yaml": tagged("b", "v2, stable"), "c.yaml": tagged("c", "v3")})
	c, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := c.Get("t/b"); e.Err == nil || !strings.Contains(e.Err.Error(), "stable belongs to pipeline t/a") {
		t.Errorf("b: %v", e.Err)
	}
	for _, key := range []string{"t/a", "t/c"} {
		if e, _ := c.Get(key); e.Err != nil {
			t.Errorf("%s: %v", key, e.Err)
		}
	}
}

// With tenants, a pipeline's namespace follows from where its file lies, and no file takes the place of another tenant's.
func TestTenantsCannotStandInForEachOther(t *testing.T) {
	bound := func(directory, namespace string) tenant.Tenant {
		one, err := tenant.New(directory, []string{namespace}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a-evil/claims.yaml":  publishing("team", "stolen", "https://h/evil.git", "r", "x", ""),
		"a-evil/broken.yaml":  strings.Replace(publishing("team", "web", "https://h/evil.git", "r", "y", ""), "source:", "sauce:", 1),
		"a-evil/own.yaml":     strings.Replace(publishing("evil", "own", "https://h/evil.git", "r", "z", ""), ", namespace: evil", "", 1),
		"b-team/web.yaml":     publishing("team", "web", "https://h/out.git", "rendered", "web", ""),
		"nowhere/orphan.yaml": publishing("team", "orphan", "https://h/out.git", "rendered", "orphan", ""),
	})
	c, err := Open(dir, nil, WithRules(Rules{Tenants: []tenant.Tenant{bound("a-evil", "evil"), bound("b-team", "team")}}))
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := c.Get("team/web"); !ok || e.Err != nil || e.File != "b-team/web.yaml" {
		t.Errorf("the team's own: %+v", e)
	}
	if e, ok := c.Get("evil/own"); !ok || e.Err != nil || e.Pipeline.Metadata.Namespace != "evil" {
		t.Errorf("one without a namespace: %+v", e)
	}
	for _, key := range []string{"team/stolen", "team/orphan"} {
		if e, ok := c.Get(key); ok {
			t.Errorf("%s is there: %+v", key, e)
		}
	}
	if got := c.Status(); got.Pipelines != 2 || got.Invalid != 3 {
		t.Errorf("got %+v", got)
	}
}

// Without tenants too, no pipeline names what the daemon is not meant to reach.
func TestPipelinesStayWithinEgress(t *testing.T) {
	reach, err := tenant.NewReach([]string{"https://h/*"}, []string{"https://h/out.git"}, []string{"https://flux.example.com/*"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ pipeline, want string }{
		"all is well":      {publishing("team", "a", "https://h/out.git", "rendered", "a", ""), ""},
		"by ssh":           {publishing("team", "a", "git@h:out.git", "rendered", "a", ""), ""},
		"another target":   {publishing("team", "a", "https://h/other.git", "rendered", "a", ""), "spec.publish[0].git.url"},
		"another source":   {strings.Replace(publishing("team", "a", "https://h/out.git", "rendered", "a", ""), "https://h/apps", "http://metadata/apps", 1), "spec.source.git.url"},
		"a call":           {publishing("team", "a", "https://h/out.git", "rendered", "a", "") + "  notify: [{cloudEvent: {url: 'https://flux.example.com/x'}}]\n", ""},
		"a call elsewhere": {publishing("team", "a", "https://h/out.git", "rendered", "a", "") + "  notify: [{cloudEvent: {url: 'http://inside/x'}}]\n", "spec.notify[0].cloudEvent.url"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"a.yaml": tc.pipeline})
			c, err := Open(dir, nil, WithRules(Rules{Reach: reach}))
			if err != nil {
				t.Fatal(err)
			}
			e, ok := c.Get("team/a")
			if !ok || tc.want == "" && e.Err != nil || tc.want != "" && (e.Err == nil || !strings.Contains(e.Err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", e.Err, tc.want)
			}
		})
	}
}
