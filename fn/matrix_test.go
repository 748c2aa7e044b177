// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/internal/conformance"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// TestOwnFieldsMatrix takes every field that an injection of any version of the corpus sets in a minimal pod, and puts it
// into the pod beforehand: with the value that the injection gives it, with another one, and empty. Whatever the version and
// the policy that follows, injecting twice is injecting once, a check finds nothing to do, a change of the policy gives what
// injecting the original gives, and removing the injection gives the original back. Of a Pod, which has no place for a
// record, a warning may take the place of the last two.
//
// PRERIG_MATRIX=full runs over all policies of the corpora in PRERIG_CORPUS, which may be several directories, and over all
// changes among the versions; otherwise one policy of a version is followed by that of the next, for every fourth case.
func TestOwnFieldsMatrix(t *testing.T) {
	policies := matrixPolicies(t)
	fields := injectedFields(t, policies)
	full := os.Getenv("PRERIG_MATRIX") == "full"
	cases, changes, pods := 0, 0, 0
	for i, a := range policies {
		m := newMatrix(t, a, fields)
		cases += len(m.docs)
		m.twice(t)
		m.back(t, m.injected, "removing the injection")
		for j, b := range policies {
			next := j == (i+1)%len(policies)
			if i == j || !next && (!full || !b.first) {
				continue
			}
			if !full {
				m = m.sample(4)
			}
			n, warned := m.change(t, b)
			changes, pods = changes+n, pods+warned
		}
	}
	t.Logf("%d fields, %d policies: %d cases, %d changes of the policy, of which %d in Pods with a warning", len(fields), len(policies), cases, changes, pods)
}

// matrixPolicy is a policy of the corpus.
type matrixPolicy struct {
	name   string
	policy *v1alpha1.InjectionPolicy
	// first says that it is the version's first.
	first bool
}

// matrixPolicies are the different policies of the corpora: a few of each version, or all of them.
func matrixPolicies(t *testing.T) []matrixPolicy {
	t.Helper()
	seen := map[string]bool{}
	out := []matrixPolicy{{"built-in", builtIn(v1alpha1.ModeInject), true}}
	for _, dir := range filepath.SplitList(os.Getenv("PRERIG_CORPUS")) {
		versions, err := conformance.Load(dir)
		if err != nil {
			t.Skipf("the conformance corpus is not there (%v); set PRERIG_CORPUS to its directory", err)
		}
		for _, v := range versions {
			n := 0
			for _, c := range v.Cases {
				p, err := c.Policy()
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(p.Spec)
				if err != nil {
					t.Fatal(err)
				}
				if c.ExpectError != "" || seen[string(text)] || n > 0 && os.Getenv("PRERIG_MATRIX") != "full" {
					continue
				}
				seen[string(text)] = true
				out = append(out, matrixPolicy{v.Version.String() + " " + c.Name, p, n == 0})
				n++
			}
		}
	}
	return out
}

// ownField is a field that an injection sets, with the values that it was seen to have, by the policy.
type ownField struct {
	// path leads to it: keys of maps, and names of elements of lists.
	path   []string
	values map[string]any
}

// minimalPod has one of each thing that injection changes.
const minimalPod = `{"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1",
	"ports": [{"name": "http", "containerPort": 8080}], "readinessProbe": {"httpGet": {"path": "/", "port": 8080}}}]}}`

// injectedFields injects a minimal pod with every policy and collects the fields that change.
func injectedFields(t *testing.T, policies []matrixPolicy) []ownField {
	t.Helper()
	found := map[string]*ownField{}
	var bare map[string]any
	if err := json.Unmarshal([]byte(minimalPod), &bare); err != nil {
		t.Fatal(err)
	}
	for _, p := range policies {
		for _, extra := range []map[string]any{nil, {"inject.istio.io/templates": "gateway"}} {
			pod := workloadOf("Pod", bare)
			if extra != nil {
				pod = workloadOf("Pod", withField(bare, []string{"metadata", "annotations"}, extra))
			}
			results, docs := runAll(t, p.policy, v1alpha1.ModeInject, []*manifest.Document{pod})
			if len(results[0].errors) > 0 {
				continue
			}
			after, err := docs[0].Object()
			if err != nil {
				t.Fatal(err)
			}
			collect(found, p.name, nil, bare, after)
		}
	}
	var out []ownField
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[key])
	}
	return out
}

// collect notes the fields that an injection has set: annotations, labels and fields of the spec, and elements of its lists.
func collect(found map[string]*ownField, policy string, path []string, before, after map[string]any) {
	note := func(path []string, v any) {
		key := strings.Join(path, "\x00")
		if found[key] == nil {
			found[key] = &ownField{path: path, values: map[string]any{}}
		}
		found[key].values[policy] = v
	}
	for name, v := range after {
		at := append(slices.Clone(path), name)
		was, there := before[name]
		if reflect.DeepEqual(v, was) || slices.Contains([]string{"apiVersion", "kind"}, name) && len(path) == 0 {
			continue
		}
		switch list, _ := v.([]any); {
		case list != nil:
			for _, e := range list {
				element, _ := e.(map[string]any)
				switch own, _ := element["name"].(string); own {
				case "":
				case "web":
					old, _ := was.([]any)
					web, _ := old[0].(map[string]any)
					for field, v := range element {
						if !reflect.DeepEqual(v, web[field]) {
							note(append(slices.Clone(at), own, field), v)
						}
					}
				default:
					note(append(slices.Clone(at), own), e)
				}
			}
			if !isContainers(name) {
				note(at, v)
			}
		case len(path) < 2 && isMap(v):
			inner, _ := was.(map[string]any)
			collect(found, policy, at, inner, v.(map[string]any))
			if len(path) == 1 && !there {
				whole := maps.Clone(v.(map[string]any)) // a whole status would be that of an injection
				delete(whole, "sidecar.istio.io/status")
				note(at, whole)
			}
		default:
			note(at, v)
		}
	}
}

func isMap(v any) bool { _, ok := v.(map[string]any); return ok }

// withField gives a copy of a pod with a value at a path. A key below a list is the name of an element.
func withField(pod map[string]any, path []string, v any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, pod)
	key := path[0]
	list, isList := out[key].([]any)
	switch {
	case len(path) == 1 && isList && len(list) > 0:
		more, _ := v.([]any)
		out[key] = append(slices.Clone(list), more...)
	case len(path) == 1:
		out[key] = v
	case isListOfNames(key):
		out[key] = withElement(list, path[1:], v)
	default:
		inner, _ := out[key].(map[string]any)
		out[key] = withField(inner, path[1:], v)
	}
	return out
}

// withElement gives a copy of a list with a further element, or with a field of one that is there.
func withElement(list []any, path []string, v any) []any {
	out := slices.Clone(list)
	for i, e := range out {
		if m, _ := e.(map[string]any); len(path) > 1 && m["name"] == path[0] {
			out[i] = withField(m, path[1:], v)
			return out
		}
	}
	return append(out, v)
}

func isListOfNames(key string) bool {
	return slices.Contains([]string{"containers", "initContainers", "volumes", "imagePullSecrets"}, key)
}

// variants are the values that a field has in the pod beforehand.
func (f *ownField) variants(policy string) map[string]any {
	same, ok := f.values[policy]
	if !ok {
		same = f.values[slices.Min(slices.Collect(maps.Keys(f.values)))]
	}
	out := map[string]any{"same": same}
	switch v := same.(type) {
	case string:
		out["another"], out["empty"] = "own", ""
	case map[string]any:
		if name, ok := v["name"]; ok && len(f.path) > 2 {
			out["another"], out["empty"] = map[string]any{"name": name, "own": "x"}, map[string]any{"name": name}
			if isContainers(f.path[1]) {
				out["another"] = map[string]any{"name": name, "image": "auto", "env": []any{map[string]any{"name": "OWN", "value": "x"}}}
				out["empty"] = map[string]any{"name": name, "image": "auto"}
			} else if f.path[1] == "volumes" {
				out["another"] = map[string]any{"name": name, "hostPath": map[string]any{"path": "/own"}}
			}
		} else {
			out["empty"] = map[string]any{}
		}
	case []any:
		out["empty"] = []any{}
	case int64, float64:
		out["another"], out["empty"] = int64(5), nil
	}
	return out
}

func isContainers(key string) bool { return key == "containers" || key == "initContainers" }

// workloadOf writes a pod as a document: a Pod, or a Deployment of it.
func workloadOf(kind string, pod map[string]any) *manifest.Document {
	obj := map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "template": pod}}
	if kind == "Pod" {
		obj = maps.Clone(pod)
		meta := map[string]any{"name": "web", "namespace": "shop"}
		inner, _ := pod["metadata"].(map[string]any)
		maps.Copy(meta, inner)
		obj["apiVersion"], obj["kind"], obj["metadata"] = "v1", kind, meta
	}
	f, err := manifest.Parse("", manifest.Marshal(obj))
	if err != nil || len(f.Docs) != 1 {
		panic(fmt.Sprint("writing a test's workload: ", err))
	}
	return f.Docs[0]
}

// docResult is what a run said about one document.
type docResult struct{ errors, warnings []string }

// doubts reports whether a warning tells that something of the original is not known.
func (r docResult) doubts() bool {
	return slices.ContainsFunc(r.warnings, func(w string) bool { return strings.Contains(w, "taking an earlier injection out") })
}

// runAll runs a policy over documents, each in a file of its own.
func runAll(t *testing.T, p *v1alpha1.InjectionPolicy, mode v1alpha1.Mode, docs []*manifest.Document) ([]docResult, []*manifest.Document) {
	t.Helper()
	with := *p
	with.Spec.Mode = mode
	in, err := fn.New([]*v1alpha1.InjectionPolicy{&with})
	if err != nil {
		t.Fatal(err)
	}
	items := make([]fn.Item, len(docs))
	for i, d := range docs {
		items[i] = fn.Item{Doc: d, Path: fmt.Sprint(i)}
	}
	report, err := in.Run(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	results, out := make([]docResult, len(docs)), make([]*manifest.Document, len(docs))
	for i, item := range report.Items {
		out[i] = item.Doc
	}
	for _, r := range report.Results {
		if r.File == nil {
			continue
		}
		var i int
		if _, err := fmt.Sscan(r.File.Path, &i); err != nil {
			t.Fatal(err)
		}
		switch r.Severity {
		case result.Error:
			results[i].errors = append(results[i].errors, r.String())
		case result.Warning:
			results[i].warnings = append(results[i].warnings, r.String())
		}
	}
	return results, out
}

// matrix is one policy with the documents that it injects.
type matrix struct {
	matrixPolicy
	docs, injected []*manifest.Document
	// names say what is in each document.
	names []string
	kinds []string
}

func newMatrix(t *testing.T, p matrixPolicy, fields []ownField) *matrix {
	t.Helper()
	var bare map[string]any
	if err := json.Unmarshal([]byte(minimalPod), &bare); err != nil {
		t.Fatal(err)
	}
	all := &matrix{matrixPolicy: p}
	for _, f := range fields {
		for _, variant := range slices.Sorted(maps.Keys(f.variants(p.name))) {
			v := f.variants(p.name)[variant]
			for _, kind := range []string{"Deployment", "Pod"} {
				all.docs = append(all.docs, workloadOf(kind, withField(bare, f.path, v)))
				all.names = append(all.names, fmt.Sprintf("%s with %s %s", kind, variant, strings.Join(f.path, ".")))
				all.kinds = append(all.kinds, kind)
			}
		}
	}
	results, injected := runAll(t, p.policy, v1alpha1.ModeInject, all.docs)
	m := &matrix{matrixPolicy: p}
	for i := range all.docs {
		if len(results[i].errors) > 0 {
			continue // the version refuses it
		}
		m.docs, m.injected = append(m.docs, all.docs[i]), append(m.injected, injected[i])
		m.names, m.kinds = append(m.names, all.names[i]), append(m.kinds, all.kinds[i])
	}
	return m
}

// sample gives every nth pair of documents.
func (m *matrix) sample(n int) *matrix {
	out := &matrix{matrixPolicy: m.matrixPolicy}
	for i := range m.docs {
		if i/2%n == 0 {
			out.docs, out.injected = append(out.docs, m.docs[i]), append(out.injected, m.injected[i])
			out.names, out.kinds = append(out.names, m.names[i]), append(out.kinds, m.kinds[i])
		}
	}
	return out
}

// twice injects again, and checks.
func (m *matrix) twice(t *testing.T) {
	t.Helper()
	results, again := runAll(t, m.policy, v1alpha1.ModeInject, m.injected)
	checks, _ := runAll(t, m.policy, v1alpha1.ModeCheck, m.injected)
	for i := range m.docs {
		if m.kinds[i] == "Pod" && m.name == "built-in" && ownVolumeOfIstio[m.names[i]] {
			t.Logf("%s, %s: left out, a known fault", m.name, m.names[i])
			continue
		}
		if len(results[i].errors)+len(checks[i].errors) > 0 {
			t.Errorf("%s, %s: %v %v", m.name, m.names[i], results[i].errors, checks[i].errors)
		}
		if !bytes.Equal(again[i].Raw(), m.injected[i].Raw()) {
			t.Errorf("%s, %s: injecting twice is not injecting once:\n%s", m.name, m.names[i], cmp.Diff(string(m.injected[i].Raw()), string(again[i].Raw())))
		}
	}
}

// ownVolumeOfIstio are Pods whose own volumes are, word for word, those that the built-in policy injects. A second injection
// takes them out and puts them in another order: a known fault, which only bare Pods have, as they keep no record.
var ownVolumeOfIstio = map[string]bool{
	"Pod with same spec.volumes":                   true,
	"Pod with same spec.volumes.credential-socket": true,
	"Pod with same spec.volumes.workload-certs":    true,
}

// back removes the injection, and gives the number of Pods that came back different, with a warning.
func (m *matrix) back(t *testing.T, injected []*manifest.Document, what string) int {
	t.Helper()
	results, back := runAll(t, m.policy, v1alpha1.ModeRemove, injected)
	warned := 0
	for i := range m.docs {
		if bytes.Equal(back[i].Raw(), m.docs[i].Raw()) || sameObject(t, back[i], m.docs[i]) {
			continue
		}
		if m.kinds[i] == "Pod" && results[i].doubts() {
			warned++
			continue
		}
		t.Errorf("%s, %s: %s gives something else, without a warning:\n%s", m.name, m.names[i], what, cmp.Diff(string(m.docs[i].Raw()), string(back[i].Raw())))
	}
	return warned
}

// change injects with another policy over what this one has injected. It gives the number of cases, and of those that a
// warning tells of.
func (m *matrix) change(t *testing.T, to matrixPolicy) (cases, warned int) {
	t.Helper()
	direct, want := runAll(t, to.policy, v1alpha1.ModeInject, m.docs)
	over, got := runAll(t, to.policy, v1alpha1.ModeInject, m.injected)
	next := &matrix{matrixPolicy: to}
	next.name = m.name + " to " + to.name
	for i := range m.docs {
		if len(direct[i].errors) > 0 {
			continue // the next version refuses it
		}
		cases++
		switch {
		case bytes.Equal(want[i].Raw(), got[i].Raw()):
		case m.kinds[i] == "Pod" && over[i].doubts():
			warned++
		default:
			t.Errorf("%s, %s: injecting again is not injecting the original, without a warning (%v):\n%s", next.name, m.names[i], over[i].errors, cmp.Diff(string(want[i].Raw()), string(got[i].Raw())))
			continue
		}
		next.docs, next.injected = append(next.docs, m.docs[i]), append(next.injected, got[i])
		next.names, next.kinds = append(next.names, m.names[i]), append(next.kinds, m.kinds[i])
	}
	next.twice(t)
	next.back(t, next.injected, "removing the second injection")
	return cases, warned
}
