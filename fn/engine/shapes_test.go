// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// typicalWorkload is one of many alike. %[1]d is its number.
const typicalWorkload = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: front-%[1]d
  namespace: team-%[2]d
  annotations:
    config.kubernetes.io/index: '%[1]d'
    config.kubernetes.io/path: 'front/%[1]d.yaml'
  labels:
    app.kubernetes.io/name: front-%[1]d
spec:
  replicas: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: front-%[1]d
  template:
    metadata:
      labels:
        app.kubernetes.io/name: front-%[1]d
        app.kubernetes.io/version: 2.14.%[1]d
      annotations:
        checksum/config: f2%[1]dab
    spec:
      serviceAccountName: front-%[1]d
      containers:
      - name: main
        image: registry.example.com/shop/front-%[1]d:2.14.%[1]d
        args:
        - --listen=:8080
        - --name=front-%[1]d
        ports:
        - name: http
          containerPort: 8080
        env:
        - name: LOG_LEVEL
          value: "level%[1]d"
        - name: URL
          valueFrom:
            secretKeyRef:
              name: front-%[1]d-database
              key: url
        readinessProbe:
          httpGet:
            path: /ready
            port: http
        resources:
          requests:
            cpu: 25%[1]dm
            memory: 256Mi
        volumeMounts:
        - name: config
          mountPath: /etc/app
      volumes:
      - name: config
        configMap:
          name: front-%[1]d
`

func builtInPolicy(t testing.TB) *v1alpha1.InjectionPolicy {
	t.Helper()
	p, err := v1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {injector: {builtIn: istio}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func itemsOf(t testing.TB, text string) []Item {
	t.Helper()
	file, err := manifest.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var items []Item
	for i, d := range file.Docs {
		items = append(items, Item{Doc: d, Index: i})
	}
	return items
}

// typicalRun returns n workloads of one shape, and an injector that compares as many of them as it does outside of tests.
func typicalRun(t testing.TB, n int) (*Injector, []Item) {
	t.Helper()
	in, err := New([]*v1alpha1.InjectionPolicy{builtInPolicy(t)}, WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	in.checksShapes = false
	var docs []string
	for i := range n {
		docs = append(docs, fmt.Sprintf(typicalWorkload, i+1, i%7))
	}
	return in, itemsOf(t, strings.Join(docs, "---\n"))
}

// TestWorkloadsOfAShapeAreInjectedOnce counts the workloads that take the full path.
func TestWorkloadsOfAShapeAreInjectedOnce(t *testing.T) {
	in, items := typicalRun(t, 200)
	report, err := in.Run(context.Background(), items)
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, item := range report.Items {
		if item.Doc.IsFilled() {
			used++
		}
	}
	if used < 180 {
		t.Errorf("%d of %d workloads took the short way; shapes: %d", used, len(items), len(in.shapes.shapes))
		for k, v := range in.shapes.shapes {
			t.Logf("%v %q", v != nil, k)
		}
	}
}

// TestAShapeCostsTwoInjections counts the injections of workloads of one shape: those before shapes are looked for, the first, and one with
// made-up names.
func TestAShapeCostsTwoInjections(t *testing.T) {
	f := newFuzzedShapes(t, builtInPolicy(t))
	f.run.always = false
	injections := 0
	count := func(u *documentUnit) {
		injections++
		f.full(u)
	}
	_, items := typicalRun(t, 20)
	for _, u := range flattenItems(items) {
		if f.run.process(u, count); u.changed == nil {
			t.Fatalf("%v is not injected", u.meta)
		}
	}
	if injections != minCandidates+2 {
		t.Errorf("%d injections of %d workloads, not %d", injections, len(items), minCandidates+2)
	}
}

// TestAShapeOfAnotherFirstResultIsNotUsed has the first workload of a shape seem to have another result: the second is injected by itself.
func TestAShapeOfAnotherFirstResultIsNotUsed(t *testing.T) {
	f := newFuzzedShapes(t, builtInPolicy(t))
	f.run.always = false
	_, items := typicalRun(t, minCandidates+2)
	units := flattenItems(items)
	for _, u := range units[:minCandidates+1] {
		f.run.process(u, f.full)
	}
	for _, first := range f.run.firsts {
		first.digest[0]++
	}
	last := units[minCandidates+1]
	f.run.process(last, f.full)
	if last.changed == nil || last.changed.IsFilled() {
		t.Error("the second workload has the result of a shape that differs")
	}
	for key, learned := range f.run.table.shapes {
		if learned != nil {
			t.Errorf("the shape is used: %q", key)
		}
	}
}

// TestAShapeThatDiffersIsDropped spoils a shape: the workloads that are compared get their own injection and a warning, and all after them too.
func TestAShapeThatDiffersIsDropped(t *testing.T) {
	in, items := typicalRun(t, 2000)
	if _, err := in.Run(context.Background(), items[:10]); err != nil {
		t.Fatal(err)
	}
	spoiled := 0
	for _, learned := range in.shapes.shapes {
		if learned != nil {
			learned.mould = manifest.NewMould([]string{"spoiled: true\n"}, nil)
			spoiled++
		}
	}
	report, err := in.Run(context.Background(), items)
	if err != nil {
		t.Fatal(err)
	}
	warned, at := 0, -1
	for i, r := range report.Results {
		if r.Severity == result.Warning && strings.Contains(r.Message, "please report it") {
			warned, at = warned+1, i
		}
	}
	if spoiled != 1 || warned != 1 || report.Failed() {
		t.Fatalf("%d shapes, %d warnings, failed: %t", spoiled, warned, report.Failed())
	}
	if ref := report.Results[at].ResourceRef; ref == nil || !strings.HasPrefix(ref.Name, "front-") {
		t.Errorf("the warning is about %v", ref)
	}
	last := report.Items[len(items)-1].Doc
	if last.IsFilled() || !last.Contains("istio-proxy") {
		t.Errorf("the last one is\n%s", last.Text())
	}
}

// TestWordsOfTheInjectionAreReserved puts each word of the injection's own sources, and of the workload, in the place of each name of a workload. One that the
// injection treats differently from other names makes a difference between the two ways, which is a panic.
func TestWordsOfTheInjectionAreReserved(t *testing.T) {
	in, items := typicalRun(t, 10)
	in.checksShapes = true
	if _, err := in.Run(context.Background(), items); err != nil { // learns the shape
		t.Fatal(err)
	}
	var docs []string
	words := wordsOfSources(t, ".", "../admission", "../decide", "../inject", "../istio", "../istio/feature", "../pin", "../podmap", "../sidecar", "../workload")
	for _, word := range strings.FieldsFunc(typicalWorkload, func(r rune) bool { return !unicode.IsLetter(r) }) { // and the workload's own
		if strings.ToLower(word) == word && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for i, word := range words {
		text := fmt.Sprintf(typicalWorkload, i+1, i%7)
		docs = append(docs,
			strings.ReplaceAll(text, fmt.Sprintf("front-%d", i+1), word),
			strings.ReplaceAll(text, fmt.Sprintf("team-%d", i%7), word),
			strings.ReplaceAll(text, "name: main", "name: "+word),
			strings.ReplaceAll(text, fmt.Sprintf("registry.example.com/shop/front-%[1]d:2.14.%[1]d", i+1), word))
	}
	before := in.shapes.compared.Load()
	if _, err := in.Run(context.Background(), itemsOf(t, strings.Join(docs, "---\n"))); err != nil {
		t.Fatal(err)
	}
	if n := in.shapes.compared.Load() - before; len(words) < 300 || n < int64(len(words)) {
		t.Errorf("%d results of %d words were compared", n, len(words))
	}
}

// wordsOfSources returns the strings in the sources of packages that could be names.
func wordsOfSources(t *testing.T, dirs ...string) []string {
	t.Helper()
	found := map[string]bool{}
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil && len(validation.IsDNS1123Label(text)) == 0 {
						found[text] = true
					}
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}
