// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// application is a Deployment with the proxy of a mesh.
func application(name, image, proxy string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: shop
spec:
  template:
    spec:
      containers:
      - name: %[1]s
        image: reg/%[1]s:%[2]s
      - name: istio-proxy
        env:
        - name: OWNER
          value: kubernetes://apis/apps/v1/namespaces/shop/deployments/%[1]s
        image: proxyv2:%[3]s
`, name, image, proxy)
}

func configMap(name string, lines ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  config: |\n    " + strings.Join(lines, "\n    ") + "\n"
}

// comparison compares n pipelines, of which each changes in its own way where distinct is set.
func comparison(n int, distinct bool) *Comparison {
	c := &Comparison{}
	var units []*group.Unit
	for i := range n {
		name, image := fmt.Sprintf("app-%04d", i), "1"
		if distinct {
			image = fmt.Sprintf("%d.%d", i, i*i)
		}
		found, same := group.Compare(map[string][]byte{"f.yaml": []byte(application(name, "1", "1"))}, map[string][]byte{"f.yaml": []byte(application(name, image, "2"))})
		p := PipelineChange{Pipeline: "team/" + name, Targets: []TargetChange{{Target: "t", Against: "branch rendered of u", Modified: len(found), Unchanged: same}}}
		for _, u := range found {
			u.Pipeline, u.Target = p.Pipeline, "t"
		}
		c.Pipelines, units = append(c.Pipelines, p), append(units, found...)
	}
	c.Changes = group.Changes(units)
	return c
}

func markdown(t *testing.T, c *Comparison) string {
	t.Helper()
	var out bytes.Buffer
	if err := c.Markdown(&out); err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCount(out.Bytes()); n >= 65_536 || out.Len() > MaxMarkdown {
		t.Errorf("the comment has %d characters", n)
	}
	return out.String()
}

func TestTextOfMany(t *testing.T) {
	var out bytes.Buffer
	if err := comparison(1000, false).Text(&out, false); err != nil {
		t.Fatal(err)
	}
	want := `== modified: the same in 1000 Deployments of 1000 pipelines
   Deployment shop/app-0000 (team/app-0000)
   Deployment shop/app-0001 (team/app-0001)
   Deployment shop/app-0002 (team/app-0002)
   Deployment shop/app-0003 (team/app-0003)
   Deployment shop/app-0004 (team/app-0004)
   Deployment shop/app-0005 (team/app-0005)
   Deployment shop/app-0006 (team/app-0006)
   Deployment shop/app-0007 (team/app-0007)
   Deployment shop/app-0008 (team/app-0008)
   Deployment shop/app-0009 (team/app-0009)
   and 990 more (-o json names all)
@@ spec.template.spec.containers[istio-proxy].image
         env:
         - name: OWNER
           value: kubernetes://apis/apps/v1/namespaces/shop/deployments/app-0000
-        image: proxyv2:1
+        image: proxyv2:2

compared with the branch rendered of u: 1000 pipelines
1000 pipelines compared: 0 objects added, 1000 modified, 0 deleted, 0 unchanged; 1 different change
`
	want = strings.Replace(want, "         env:\n         - name: OWNER\n           value: kubernetes://apis/apps/v1/namespaces/shop/deployments/app-0000\n", "", 1)
	if got := out.String(); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestMarkdownSaysWhatItLeavesOut(t *testing.T) {
	c := comparison(1000, true)
	text := markdown(t, c)
	// One change is that of all proxies, and one is each application's own.
	if len(c.Changes) != 1001 || len(c.Changes[0].Objects) != 1000 {
		t.Fatalf("%d changes", len(c.Changes))
	}
	found := regexp.MustCompile(`\*\*(\d+) more changes, of (\d+) objects, are left out here`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("it does not say that something is missing:\n%s", text[len(text)-500:])
	}
	left, _ := strconv.Atoi(found[1])
	if shown := strings.Count(text, "<details"); shown+left != 1001 || shown < 20 || found[1] != found[2] {
		t.Errorf("%d changes are shown and %s, of %s objects, are left out", shown, found[1], found[2])
	}
	if strings.Count(text, "```diff") != strings.Count(text, "</details>") || !strings.Contains(text, "- and 990 more") {
		t.Error("a section is not complete")
	}
}

func TestMarkdownOfALongChange(t *testing.T) {
	long := make([]string, 5000)
	for i := range long {
		long[i] = fmt.Sprintf("line %d", i)
	}
	units, _ := group.Compare(map[string][]byte{"short": []byte(configMap("short", "a"))},
		map[string][]byte{"short": []byte(configMap("short", "b")), "long": []byte(configMap("long", long...))})
	c := &Comparison{Changes: group.Changes(units)}
	text := markdown(t, c)
	found := regexp.MustCompile(`\*\*(\d+) more lines of this change are left out here`).FindStringSubmatch(text)
	if found == nil {
		t.Fatal("it does not say that lines are missing")
	}
	left, _ := strconv.Atoi(found[1])
	if shown := strings.Count(text, "+    line "); shown+left != 5000 {
		t.Errorf("%d lines are shown and %d left out", shown, left)
	}
	if !strings.Contains(text, "ConfigMap short") {
		t.Error("a long change hides another")
	}
}

func TestMarkdownOfManyProblems(t *testing.T) {
	c := &Comparison{}
	for i := range 1000 {
		name := fmt.Sprintf("app-%04d", i)
		c.Pipelines = append(c.Pipelines, PipelineChange{Pipeline: "team/" + name, Error: "reading apps/" + name + "/app.yaml: it is not there"},
			PipelineChange{Pipeline: "other/" + name, Error: strings.Repeat("<&>", i+1)})
	}
	text := markdown(t, c)
	if !strings.Contains(text, "error: team/app-0000, team/app-0001") || !strings.Contains(text, "and 990 more:** reading apps/&lt;name&gt;/app.yaml") {
		t.Errorf("what they have in common is not told once:\n%s", text[:2000])
	}
	found := regexp.MustCompile(`and (\d+) more problems`).FindStringSubmatch(text)
	if found == nil {
		t.Fatal("it does not say that problems are missing")
	}
	if left, _ := strconv.Atoi(found[1]); left+strings.Count(text, "> **error:") != 1001 {
		t.Errorf("%d are told and %d left out", strings.Count(text, "> **error:"), left)
	}
	if !c.Failed() || strings.Count(c.Problem().Error(), "\n") != 1000 {
		t.Error("the error does not name all problems")
	}
}

func TestMarkdownEscapes(t *testing.T) {
	hostile := "<img src=x> @everyone [a](http://evil) `code` **bold** #1"
	c := &Comparison{
		Pipelines: []PipelineChange{{Pipeline: hostile, Error: hostile}},
		Changes:   []group.Change{{Kind: group.Modified, Hunks: []group.Hunk{{At: "a\n```", Text: "+```\n+````\n"}}, Objects: []group.Object{{Pipeline: hostile, Name: hostile}}}},
	}
	text := markdown(t, c)
	for _, bad := range []string{"<img", "@everyone", "](", "**bold", "#1", "http://"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is not escaped:\n%s", bad, text)
		}
	}
	if !strings.Contains(text, "`````diff\n") {
		t.Errorf("the fence is not longer than what it holds:\n%s", text)
	}
}

func TestSummaries(t *testing.T) {
	one := func(target TargetChange) PipelineChange {
		return PipelineChange{Pipeline: "p", Targets: []TargetChange{target}}
	}
	for name, tc := range map[string]struct {
		pipelines []PipelineChange
		want      string
		failed    bool
	}{
		"equal":         {[]PipelineChange{one(TargetChange{Unchanged: 3})}, "1 pipeline compared: nothing would change", false},
		"not rendered":  {[]PipelineChange{one(TargetChange{}), {Error: "x"}}, "1 pipeline compared: nothing would change; 1 could not be rendered", true},
		"no place read": {[]PipelineChange{one(TargetChange{Error: "x"})}, "0 pipelines compared; 1 place could not be read", true},
		"one of two places read": {[]PipelineChange{{Targets: []TargetChange{{Error: "x"}, {Unchanged: 1}}}},
			"1 pipeline compared: nothing would change where it could be read; 1 place could not be read", true},
		"nothing rendered": {[]PipelineChange{{Error: "x"}}, "0 pipelines compared; 1 could not be rendered", true},
		"refused":          {[]PipelineChange{one(TargetChange{Gate: "x"})}, "1 pipeline compared: nothing would change", true},
		"nowhere":          {[]PipelineChange{{}, {}}, "0 pipelines compared; 2 publish nowhere", false},
	} {
		c := &Comparison{Pipelines: tc.pipelines}
		if got := c.summaryLine(); got != tc.want || c.Failed() != tc.failed {
			t.Errorf("%s: got %q, %v", name, got, c.Failed())
		}
	}
}

// TestObjectsThatNoServerWouldTake have a field of a pod's in no form that one has; what differs is shown all the same.
func TestObjectsThatNoServerWouldTake(t *testing.T) {
	for name, spec := range map[string]string{
		"no containers": "{nodeName: %s}", "no list": "{containers: %s}", "no names": "{containers: [%s, 1]}", "no spec": "%s",
		"ports of another kind": "{containers: [{name: a, ports: %s}]}",
	} {
		t.Run(name, func(t *testing.T) {
			file := func(value string) map[string][]byte {
				return map[string][]byte{"f.yaml": []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: " + fmt.Sprintf(spec, value) + "\n")}
			}
			units, _ := group.Compare(file("before"), file("after"))
			c := &Comparison{Changes: group.Changes(units)}
			if out := markdown(t, c); !strings.Contains(out, "before") || !strings.Contains(out, "after") {
				t.Error(out)
			}
		})
	}
}
