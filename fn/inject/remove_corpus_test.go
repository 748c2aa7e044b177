// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/corpustest"
)

var corpusVersions = []string{"1.1.3", "1.5.0", "1.8.6", "1.10.6", "1.24.6", "1.31.0-rc.0"}

// corpusPod is a pod of a corpus that its case injects.
type corpusPod struct {
	name  string
	pod   map[string]any
	owner workload.Owner
	in    *istio.Injector
	ns    Namespace
}

// corpusPods returns all pods of a version that are injected without an error.
func corpusPods(t *testing.T, dir, version string) []corpusPod {
	t.Helper()
	var out []corpusPod
	for _, c := range corpusCases(t, dir, version) {
		if c.ExpectError != "" {
			continue
		}
		in := c.injector(t, dir, version, istio.AdmissionDefaulted)
		for i, obj := range readObjects(t, filepath.Join(dir, version, c.Input)) {
			for j, tmpl := range templates(t, obj) {
				if required(tmpl.Pod, in.Profile().Minor()) {
					name := fmt.Sprintf("%s %s [%d.%d]", version, c.Name, i, j)
					out = append(out, corpusPod{name: name, pod: tmpl.Pod, owner: tmpl.Declared, in: in, ns: Namespace{Name: tmpl.Declared.Namespace}})
				}
			}
		}
	}
	return out
}

func (c corpusPod) inject(t *testing.T, pod map[string]any) map[string]any {
	t.Helper()
	return c.injectWith(t, c.in, pod)
}

func (c corpusPod) injectWith(t *testing.T, in *istio.Injector, pod map[string]any) map[string]any {
	t.Helper()
	res, err := Istio(in, Request{Pod: pod, Owner: c.owner, Namespace: c.ns, FromOriginal: true})
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return res.Pod
}

func remove(t *testing.T, pod map[string]any, owner workload.Owner) Removed {
	t.Helper()
	out, err := Remove(RemoveRequest{Pod: pod, Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// differing returns the paths at which two pods differ as API objects, lists by name where they have names.
func differing(t *testing.T, a, b map[string]any) []string {
	t.Helper()
	clean := func(pod map[string]any) any {
		data, err := json.Marshal(asPod(t, pod))
		if err != nil {
			t.Fatal(err)
		}
		return withoutEmptyValues(decodeObject(t, data))
	}
	var out []string
	paths("", clean(a), clean(b), &out)
	sort.Strings(out)
	return out
}

func withoutEmptyValues(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = withoutEmptyValues(e); e != nil {
				out[k] = e
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		for i := range v {
			v[i] = withoutEmptyValues(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	}
	return v
}

func paths(at string, a, b any, out *[]string) {
	if reflect.DeepEqual(a, b) {
		return
	}
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if aok && bok {
		for k := range am {
			paths(at+"."+k, am[k], bm[k], out)
		}
		for k := range bm {
			if _, ok := am[k]; !ok {
				paths(at+"."+k, nil, bm[k], out)
			}
		}
		return
	}
	al, aok := a.([]any)
	bl, bok := b.([]any)
	if aok && bok && len(al) == len(bl) {
		for i := range al {
			m, _ := al[i].(map[string]any)
			paths(fmt.Sprintf("%s[%v]", at, m["name"]), al[i], bl[i], out)
		}
		return
	}
	*out = append(*out, fmt.Sprintf("%s: %v -> %v", strings.TrimPrefix(at, "."), a, b))
}

// TestCorpusRemove takes every injection of the corpora out again.
func TestCorpusRemove(t *testing.T) {
	dir := corpustest.Dir(t)
	for _, version := range corpusVersions {
		count := map[string]int{}
		for _, c := range corpusPods(t, dir, version) {
			original := c.pod
			if _, ok := stringIn(mapAt(original, "metadata")["annotations"], statusAnnotation); ok {
				earlier := remove(t, original, c.owner)
				if !earlier.Injected {
					count["(with a status that no injection wrote)"]++
					continue
				}
				original = earlier.Pod
				count["(already injected)"]++
			}
			injected := c.inject(t, original)
			out := remove(t, injected, c.owner)
			diff := differing(t, original, out.Pod)
			switch {
			case len(diff) == 0 && reflect.DeepEqual(podmap.PodPart(original), podmap.PodPart(out.Pod)):
				count["exact to the last field"]++
			case len(diff) == 0:
				count["equal as API objects"]++
			default:
				count["different, named"]++
				t.Logf("%s: %s", c.name, strings.Join(diff, "\n  "))
				for _, d := range diff {
					if !named(out, d) {
						t.Errorf("%s: nothing says that this cannot be known: %s\n  unknown %v\n  assumed %v", c.name, d, out.Unknown, out.Assumed)
					}
				}
			}
			if len(out.Unknown) > 0 {
				count["with warnings"]++
			}
			recorded, err := RecordOriginal(original, injected)
			if err != nil {
				t.Fatal(err)
			}
			back := remove(t, recorded, c.owner)
			if d := cmp.Diff(podmap.PodPart(original), podmap.PodPart(back.Pod), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s: with a record: %s", c.name, d)
			} else {
				count["exact with a record"]++
			}
		}
		t.Logf("%s: %v", version, count)
	}
}

func mapAt(m map[string]any, key string) map[string]any {
	out, _ := m[key].(map[string]any)
	return out
}

// named reports whether a note is about the field at which a difference is, or about one above or below it.
func named(out Removed, diff string) bool {
	path, _, _ := strings.Cut(diff, ": ")
	path = fieldPath(path)
	for _, n := range append(append([]Note{}, out.Unknown...), out.Assumed...) {
		field := fieldPath(n.Field)
		if strings.HasPrefix(path, field) || strings.HasPrefix(field, path) {
			return true
		}
	}
	return false
}

// fieldPath returns a path with dots only.
func fieldPath(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

// TestCorpusTwice injects every pod of the corpora twice with the same configuration.
func TestCorpusTwice(t *testing.T) {
	dir := corpustest.Dir(t)
	for _, version := range corpusVersions {
		same := 0
		for _, c := range corpusPods(t, dir, version) {
			once := c.inject(t, c.pod)
			if diff := differing(t, once, c.inject(t, once)); len(diff) > 0 {
				t.Errorf("%s: injecting twice changes %s", c.name, strings.Join(diff, "\n  "))
			} else {
				same++
			}
		}
		t.Logf("%s: %d the same", version, same)
	}
}

// TestCorpusUpgrade injects what an old version has injected with the newest one, and compares with injecting the original.
func TestCorpusUpgrade(t *testing.T) {
	dir := corpustest.Dir(t)
	newest := corpusVersions[len(corpusVersions)-1]
	cases := corpusCases(t, dir, newest)
	now := cases[0].injector(t, dir, newest, istio.AdmissionDefaulted)
	for _, version := range corpusVersions[:len(corpusVersions)-1] {
		count := map[string]int{}
		for _, c := range corpusPods(t, dir, version) {
			original := remove(t, c.pod, c.owner).Pod
			if !fits(now, c, original) {
				count["(not for the new configuration)"]++
				continue
			}
			want := c.injectWith(t, now, original)
			old := c.inject(t, original)
			got := c.injectWith(t, now, old)
			diff := differing(t, want, got)
			if len(diff) == 0 {
				count["exact"]++
				continue
			}
			count["different, named"]++
			out := remove(t, old, c.owner)
			if lost := differing(t, original, out.Pod); len(lost) > 0 {
				t.Logf("%s: %s", c.name, strings.Join(lost, "\n  "))
			} else {
				t.Errorf("%s: the original is known and still: %s", c.name, strings.Join(diff, "\n  "))
			}
		}
		t.Logf("%s to %s: %v", version, newest, count)
	}
}

// fits reports whether a pod can be injected with a configuration at all: its templates and annotations may be unknown there.
func fits(in *istio.Injector, c corpusPod, pod map[string]any) bool {
	_, err := Istio(in, Request{Pod: pod, Owner: c.owner, Namespace: c.ns, FromOriginal: true})
	return err == nil
}
