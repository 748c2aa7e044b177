// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// injected returns manifests as a pipeline writes them, after the injection of a policy; "" injects nothing.
func injected(t *testing.T, text, policy string) string {
	t.Helper()
	file, err := manifest.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	docs := file.Docs
	if policy != "" {
		p, err := policyv1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: p}\nspec:\n" + policy))
		if err != nil {
			t.Fatal(err)
		}
		injector, err := fn.New([]*policyv1alpha1.InjectionPolicy{p})
		if err != nil {
			t.Fatal(err)
		}
		items := make([]fn.Item, len(docs))
		for i, doc := range docs {
			items[i] = fn.Item{Doc: doc, Index: i}
		}
		report, err := injector.Run(t.Context(), items)
		if err != nil {
			t.Fatal(err)
		}
		docs = nil
		for _, item := range report.Items {
			docs = append(docs, item.Doc)
		}
	}
	var out []string
	for _, doc := range docs {
		value, err := manifest.Decode(doc.Raw())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(manifest.Marshal(value)))
	}
	return strings.Join(out, "---\n")
}

// without leaves lines out, counted from 1.
func without(text string, lines []int) string {
	var out strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; !slices.Contains(lines, n) {
			out.WriteString(line)
		}
	}
	return out.String()
}

func deployment(name, podMetadata, pod string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %s\n  namespace: shop\nspec:\n  selector: {matchLabels: {app: %[1]s}}\n"+
		"  template:\n    metadata:\n      labels: {app: %[1]s, sidecar.istio.io/inject: \"true\"%s}\n    spec:\n      containers:\n      - name: app\n        image: app:1\n%s", name, podMetadata, pod)
}

const (
	plainPolicy  = "  istio: {injector: {builtIn: istio}}\n"
	nativePolicy = "  istio: {injector: {builtIn: istio}, nativeSidecars: Enabled}\n"
	classPolicy  = "  istio: {injector: {builtIn: istio}, nativeSidecars: Disabled}\n"
	configMap    = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: shop\ndata:\n  istio-proxy: is a word here\n"
)

// TestWithoutTheInjectedLinesTheOriginalIsLeft: where the injection has changed nothing of the user's, the lines that are not
// marked are the file as it was.
func TestWithoutTheInjectedLinesTheOriginalIsLeft(t *testing.T) {
	own := "      - name: helper\n        image: helper:1\n        volumeMounts: [{name: data, mountPath: /data}]\n      initContainers:\n      - {name: setup, image: setup:1}\n      volumes:\n      - {name: data, emptyDir: {}}\n"
	annotated := "}\n      annotations: {team: shop, example.com/note: \"a: b\""
	for name, tc := range map[string]struct {
		text, policy string
		marked       []string // some lines that must be
	}{
		"native sidecar": {deployment("web", "", ""), nativePolicy, []string{"- name: istio-proxy", "restartPolicy: Always", "initContainers:", "volumes:"}},
		"container":      {deployment("web", "", ""), classPolicy, []string{"- name: istio-proxy", "- name: istio-init", "sidecar.istio.io/status:"}},
		"containers, init containers, mounts and volumes of the user": {deployment("web", "", own), nativePolicy, []string{"- name: istio-proxy", "- name: istio-token"}},
		"the same with a container":                                   {deployment("web", "", own), classPolicy, []string{"- name: istio-proxy"}},
		"annotations and labels of the user":                          {deployment("web", annotated, ""), plainPolicy, []string{"sidecar.istio.io/status:", "security.istio.io/tlsMode: istio"}},
		"several workloads in one file": {
			strings.Join([]string{configMap, deployment("web", "", ""), deployment("cart", "", own)}, "---\n"), plainPolicy, []string{"- name: istio-proxy"},
		},
		"a workload beside one that is not injected": {
			deployment("web", "", "") + "---\n" + strings.Replace(deployment("cart", "", own), `"true"`, `"false"`, 1), plainPolicy, []string{"- name: istio-proxy"},
		},
		"CronJob": {
			"apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: night\n  namespace: shop\nspec:\n  schedule: \"* * * * *\"\n  jobTemplate:\n    spec:\n      template:\n        metadata:\n          labels: {sidecar.istio.io/inject: \"true\"}\n        spec:\n          restartPolicy: Never\n          containers:\n          - {name: job, image: job:1}\n",
			plainPolicy, []string{"- name: istio-proxy"},
		},
		"another sidecar": {
			deployment("web", "", own), "  sidecars:\n  - name: logs\n    select: {default: Inject}\n    template: |\n      spec:\n        containers:\n        - {name: tail, image: tail:1}\n", []string{"- name: tail"},
		},
		"Pod": {
			"apiVersion: v1\nkind: Pod\nmetadata:\n  name: one\n  namespace: shop\n  labels: {app: one, sidecar.istio.io/inject: \"true\"}\nspec:\n  containers:\n  - {name: app, image: app:1}\n",
			plainPolicy, []string{"- name: istio-proxy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := injected(t, tc.text, ""), injected(t, tc.text, tc.policy)
			if before == after {
				t.Fatal("nothing was injected")
			}
			lines := (&injectedLines{}).linesOfFile(t.Context(), []byte(after))
			if got := without(after, lines); got != before {
				t.Errorf("what is not marked differs from the original:\n%s", cmp.Diff(before, got))
			}
			all := strings.Split(after, "\n")
			for _, want := range tc.marked {
				if !slices.ContainsFunc(lines, func(n int) bool { return strings.HasPrefix(strings.TrimSpace(all[n-1]), want) }) {
					t.Errorf("%q is not marked", want)
				}
			}
		})
	}
}

// TestInjectedLinesOfWhatTheUserWrote: the injection changes a probe; the line is its own then, and nothing around it.
func TestInjectedLinesOfWhatTheUserWrote(t *testing.T) {
	probe := "        ports: [{containerPort: 8080}]\n        readinessProbe: {httpGet: {path: /ready, port: 8080}}\n"
	after := injected(t, deployment("web", "", probe), plainPolicy)
	var marked []string
	all := strings.Split(after, "\n")
	for _, n := range (&injectedLines{}).linesOfFile(t.Context(), []byte(after)) {
		marked = append(marked, strings.TrimSpace(all[n-1]))
	}
	if !slices.Contains(marked, "path: /app-health/app/readyz") || !slices.Contains(marked, "port: 15020") {
		t.Errorf("the rewritten probe is not marked: %q", marked)
	}
	for _, not := range []string{"- name: app", "image: app:1", "- containerPort: 8080", "app: web"} {
		if slices.Contains(marked, not) {
			t.Errorf("%q is marked", not)
		}
	}
}

func TestNothingIsMarked(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":          "",
		"no YAML":          "a: [\n",
		"no workload":      configMap,
		"no injection":     injected(t, deployment("web", "", ""), ""),
		"the user's proxy": injected(t, deployment("web", "", "      - name: proxy\n        image: envoy:1\n"), ""),
	} {
		if got := (&injectedLines{}).linesOfFile(t.Context(), []byte(text)); len(got) != 0 {
			t.Errorf("%s: lines %v", name, got)
		}
	}
}

// TestFileDiff: what an upgrade and the end of an injection change are lines of an injection on both sides.
func TestFileDiff(t *testing.T) {
	text := deployment("web", "", "")
	plain, old := injected(t, text, ""), injected(t, text, "  istio: {injector: {builtIn: istio, overrides: {global: {tag: 1.31.0}}}}\n")
	now := strings.Replace(injected(t, text, "  istio: {injector: {builtIn: istio, overrides: {global: {tag: 1.31.1}}}}\n"), "app:1", "app:2", 1)
	// lines gives the changed lines of one side, and how many of them are marked.
	count := func(before, after string) (changed, marked int) {
		one := (&differences{}).fileDiff(t.Context(), "f", []byte(before), []byte(after))
		for _, hunk := range strings.Split("\n"+one.Patch, "\n@@ ")[1:] {
			var from, to int
			if _, err := fmt.Sscanf(strings.NewReplacer(",", " ", "+", "").Replace(hunk[:strings.Index(hunk, "@@")]), "-%d %d %d", &from, new(int), &to); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(hunk[strings.Index(hunk, "\n")+1:]) {
				lines, at := one.Injected, &to
				switch line[0] {
				case '-':
					lines, at = one.InjectedBefore, &from
				case ' ':
					from++
				}
				if line[0] != ' ' {
					changed++
					if slices.Contains(lines, *at) {
						marked++
					}
				}
				*at++
			}
		}
		return changed, marked
	}
	if changed, marked := count(old, now); changed != 6 || marked != 4 {
		t.Errorf("an upgrade: %d of %d lines are marked", marked, changed)
	}
	if changed, marked := count(old, plain); changed != marked || changed < 100 {
		t.Errorf("a removed injection: %d of %d lines are marked", marked, changed)
	}
}

func TestLongPatchesAreCut(t *testing.T) {
	long := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: long\ndata:\n" + strings.Repeat("  key: a value of some length\n", 10_000)
	one := (&differences{}).fileDiff(t.Context(), "f", nil, []byte(long))
	if len(one.Patch) > maxDiffPatch || !strings.HasSuffix(one.Patch, "\n") {
		t.Errorf("the patch has %d bytes", len(one.Patch))
	}
	if kept := strings.Count(one.Patch, "\n+"); kept+one.LinesLeftOut != 10_005+1 { // "+++ b/f" begins with it too
		t.Errorf("%d lines are kept and %d left out", kept, one.LinesLeftOut)
	}
}

// TestInjectedLinesAreRemembered: what is remembered of a file is what is found in it, also after much else was.
func TestInjectedLinesAreRemembered(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	var l injectedLines
	if got := l.linesOfFile(t.Context(), []byte(text)); got != nil {
		t.Fatalf("nothing is injected, got lines %v", got)
	}
	sum := func(i int) (key [sha256.Size]byte) { binary.BigEndian.PutUint32(key[:], uint32(i)); return key }
	l.cacheInjectedLines(sum(0), []int32{3, 4})
	for i := 1; i < maxInjectedFiles/2; i++ {
		l.cacheInjectedLines(sum(i), []int32{int32(i)})
	}
	if got, ok := l.recallCachedLines(sum(0)); !ok || !slices.Equal(toIntLines(got), []int{3, 4}) {
		t.Errorf("got %v, %v of what was remembered a while ago", got, ok)
	}
	for i := range 3 {
		l.cacheInjectedLines(sum(-i-1), make([]int32, maxInjectedLines/2))
	}
	if _, ok := l.recallCachedLines(sum(0)); ok || len(l.young)+len(l.old) != 2 {
		t.Errorf("%d and %d files are remembered after large ones", len(l.young), len(l.old))
	}
}
