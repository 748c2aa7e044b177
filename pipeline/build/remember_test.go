// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/build/cache"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// outcome is everything of a build that anybody sees.
type outcome struct {
	Err, Fingerprint, Type, Objects, Said string
	Record                                tree.Record
}

func outcomeOf(t *testing.T, b *build.Builder, p *v1alpha1.RenderPipeline, files *tree.Tree) outcome {
	t.Helper()
	built, err := b.Build(t.Context(), p, files)
	o := outcome{Record: built.Record, Fingerprint: built.Fingerprint}
	if err != nil {
		o.Err = err.Error()
		return o
	}
	o.Type = string(built.Type)
	for _, object := range built.Objects {
		o.Objects += object.ID() + "\n" + string(object.YAML) + "---\n"
	}
	for _, one := range built.Results {
		o.Said += fmt.Sprintf("%s %+v\n", one, one.File)
	}
	o.Said += fmt.Sprintf("%+v\n%q\n", built.Decisions, built.Warnings)
	return o
}

func fullSize() bool { return os.Getenv("PRERIG_E2E") == "full" }

// TestRememberedBuildsGiveTheSame renders random pipelines with and without the memory, through random changes.
func TestRememberedBuildsGiveTheSame(t *testing.T) {
	pipelines, changes := 20, 6
	if fullSize() {
		pipelines, changes = 300, 50
	}
	w := newWorld(7, pipelines)
	r := newRenderer(t)
	dir := t.TempDir()
	with, without := newBuilders(r, dir)
	last := make([]outcome, pipelines)
	for n := range changes + 1 {
		what := "nothing"
		if n > 0 {
			what = w.change()
		}
		files := treeOf(t, w.files)
		compared := 0
		for i, p := range w.pipelines {
			if _, affected := last[i].Record.Affected(files); n > 0 && !affected && w.rand.IntN(10) > 0 && !strings.HasSuffix(what, " "+p.Metadata.Name) {
				continue
			}
			compared++
			got := outcomeOf(t, with, p, files)
			last[i] = outcomeOf(t, without, p, files)
			if diff := cmp.Diff(last[i], got); diff != "" {
				t.Fatalf("change %d (%s), %s/%s: with the memory it is another one: %s", n, what, p.Metadata.Namespace, p.Metadata.Name, diff)
			}
		}
		if n%10 == 5 {
			with, _ = newBuilders(r, dir) // as after a start
		}
		t.Logf("change %d, %s: %d compared", n, what, compared)
	}
	if r.given.Load() < int64(changes) {
		t.Errorf("%d of %d renders had a build that was remembered", r.given.Load(), r.built.Load())
	}
}

// shop is a kustomization with a policy of the pipeline.
func shop() (*v1alpha1.RenderPipeline, map[string]string) {
	p := &v1alpha1.RenderPipeline{}
	p.Metadata.Name, p.Metadata.Namespace = "shop", "team"
	p.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example.com/shop"}
	p.Spec.Build.Path = "app"
	p.Spec.Policies = []v1alpha1.PolicyRef{{Path: "policy.yaml"}}
	return p, map[string]string{
		"app/app.yaml": deployment("web", "web:1"), "app/kustomization.yaml": "resources: [app.yaml]\n", "policy.yaml": policyText("mesh", "1.29.0", ""),
	}
}

func entries(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		found[name], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestAChangeOfPolicyOnlyInjects: what a build has read is what it is known by, and nothing else is.
func TestAChangeOfPolicyOnlyInjects(t *testing.T) {
	r := newRenderer(t)
	dir := t.TempDir()
	with, without := newBuilders(r, dir)
	p, files := shop()
	observed := map[bool]int64{}
	with.Cache.Observe = func(hit bool) { observed[hit]++ }
	check := func(name string, built, given int64) {
		t.Helper()
		at := treeOf(t, files)
		r.built.Store(0)
		r.given.Store(0)
		clear(observed)
		got := outcomeOf(t, with, p, at)
		if observed[true] != given || observed[false] != built {
			t.Errorf("%s: observed %v", name, observed)
		}
		if r.built.Load() != built || r.given.Load() != given {
			t.Errorf("%s: %d builds and %d injections, want %d and %d", name, r.built.Load(), r.given.Load(), built, given)
		}
		if diff := cmp.Diff(outcomeOf(t, without, p, at), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	check("first", 1, 0)
	files["policy.yaml"] = policyText("mesh", "1.29.1", "")
	check("another policy", 0, 1)
	files["other.yaml"] = "x: y\n"
	check("another file", 0, 1)
	files["app/app.yaml"] = deployment("web", "web:2")
	check("a file that is read", 1, 0)
	files["app/app.yaml"] = deployment("web", "web:1")
	check("as it was", 0, 1)
	delete(files, "app/kustomization.yaml")
	check("a plain directory is not remembered", 1, 0)
	files["app/kustomization.yml"] = "resources: [app.yaml]\n"
	check("by another name", 1, 0)
	files["app/kustomization.yaml"] = "resources: [app.yaml]\nnamePrefix: x-\n"
	check("a file that was looked for", 1, 0)
	delete(files, "app/kustomization.yml")
	files["app/kustomization.yaml"] = "resources: [app.yaml]\n"
	check("the first again", 0, 1)
	p.Metadata.Name = "other"
	check("another pipeline with the same source", 0, 1)
	p.Spec.Build.Functions = []string{"x"}
	check("another option", 1, 0)
	p.Spec.Build.Functions = nil
	p.Metadata.Namespace = "others"
	check("another namespace, which may know no more than its name", 1, 0)
	p.Spec.Source.Git.URL = "https://git.example.com/other"
	check("another source", 1, 0)
	with.Version, without.Version = "2", "2"
	check("another version", 1, 0)
}

// TestNothingSecretIsRemembered: neither Secrets nor what is derived from a seed is kept, nor what looks like a credential.
func TestNothingSecretIsRemembered(t *testing.T) {
	key := "ghp_" + strings.Repeat("a1B2", 9)
	for name, change := range map[string]func(*v1alpha1.RenderPipeline, map[string]string){
		"a Secret": func(_ *v1alpha1.RenderPipeline, f map[string]string) {
			f["app/app.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n"
		},
		"one generated": func(_ *v1alpha1.RenderPipeline, f map[string]string) {
			f["app/kustomization.yaml"] += "secretGenerator:\n- {name: s, literals: [a=b]}\n"
		},
		"a credential": func(_ *v1alpha1.RenderPipeline, f map[string]string) {
			f["app/app.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: " + key + "}\n"
		},
		"one in a list": func(p *v1alpha1.RenderPipeline, f map[string]string) {
			maps.DeleteFunc(f, func(name, _ string) bool { return strings.HasPrefix(name, "app/") })
			f["app/Kptfile"] = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: a}\n"
			f["app/a.yaml"] = "apiVersion: v1\nkind: List\nmetadata: {name: l}\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: a}\n"
		},
	} {
		dir := t.TempDir()
		with, _ := newBuilders(newRenderer(t), dir)
		p, files := shop()
		change(p, files)
		if o := outcomeOf(t, with, p, treeOf(t, files)); o.Err != "" || o.Objects == "" {
			t.Errorf("%s: %+v", name, o)
		}
		if found := entries(t, dir); len(found) > 0 {
			t.Errorf("%s: %d entries", name, len(found))
		}
	}
}

// TestDamagedBuildsAreNotUsed: cut off, changed in any part, or put in the place of another one.
func TestDamagedBuildsAreNotUsed(t *testing.T) {
	r := newRenderer(t)
	dir := t.TempDir()
	with, _ := newBuilders(r, dir)
	p, files := shop()
	first := outcomeOf(t, with, p, treeOf(t, files))
	names := slices.Collect(maps.Keys(entries(t, dir)))
	if len(names) != 1 {
		t.Fatalf("%d entries", len(names))
	}
	whole := entries(t, dir)[names[0]]
	files["app/app.yaml"] = deployment("web", "web:2")
	second := outcomeOf(t, with, p, treeOf(t, files))
	all := entries(t, dir)
	delete(all, names[0])
	other := slices.Collect(maps.Values(all))[0]
	damages := map[string][]byte{"swapped": other, "empty": nil, "longer": append(slices.Clone(whole), 0)}
	for _, at := range []int{3, 20, 50, 90, len(whole) / 2, len(whole) - 1} {
		damages[fmt.Sprint("cut at ", at)] = whole[:at]
		changed := slices.Clone(whole)
		changed[at] ^= 0x10
		damages[fmt.Sprint("changed at ", at)] = changed
	}
	files["app/app.yaml"] = deployment("web", "web:1")
	at := treeOf(t, files)
	for name, text := range damages {
		if err := os.WriteFile(names[0], text, 0o600); err != nil {
			t.Fatal(err)
		}
		before := r.given.Load()
		if diff := cmp.Diff(first, outcomeOf(t, with, p, at)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if r.given.Load() != before {
			t.Errorf("%s: it was used", name)
		}
		if now := entries(t, dir)[names[0]]; !bytes.Equal(now, whole) {
			t.Errorf("%s: it is not written anew", name)
		}
	}
	if second.Objects == first.Objects {
		t.Error("the two are alike: swapping them proves nothing")
	}
}

// repeatingRenderer begins each build twice, as is done where the first attempt was in a process that had rendered before.
type repeatingRenderer struct{ *countingRenderer }

func (r repeatingRenderer) Render(ctx context.Context, files tree.Reader, request render.Request) (*render.Response, error) {
	if request.Keep != nil {
		request.Keep.Begin()
		q := tree.Question{Op: tree.OpLookup, Path: "only/asked/at/first"}
		request.Keep.Note(q, q.Ask(files))
		request.Keep.End()
	}
	return r.countingRenderer.Render(ctx, files, request)
}

// TestBuildsThatAreRepeatedAreRemembered: by what the second attempt asked, and a check finds them as they are.
func TestBuildsThatAreRepeatedAreRemembered(t *testing.T) {
	r := newRenderer(t)
	dir := t.TempDir()
	with, _ := newBuilders(r, dir)
	p, files := shop()
	first := outcomeOf(t, with, p, treeOf(t, files))
	names := func() (all []string) {
		for name := range entries(t, dir) {
			all = append(all, filepath.Base(name))
		}
		return all
	}
	want := names()
	dir = t.TempDir()
	with, _ = newBuilders(r, dir)
	with.Renderer = repeatingRenderer{r}
	for _, check := range []bool{false, true} {
		with.Cache.Check = check
		got := outcomeOf(t, with, p, treeOf(t, files))
		got.Record = first.Record // which has what the first attempt asked
		got.Fingerprint = first.Fingerprint
		if cmp.Diff(first, got) != "" {
			t.Errorf("check %t: %s", check, cmp.Diff(first, got))
		}
		if found := names(); len(found) != 1 || !slices.Equal(found, want) {
			t.Errorf("check %t: got %q, want %q", check, found, want)
		}
	}
}

// TestCheckedBuilds: with Check a build is always done, and one that was remembered wrongly is named and removed.
func TestCheckedBuilds(t *testing.T) {
	r := newRenderer(t)
	dir := t.TempDir()
	with, _ := newBuilders(r, dir)
	p, files := shop()
	at := treeOf(t, files)
	first := outcomeOf(t, with, p, at)
	with.Cache.Check = true
	if diff := cmp.Diff(first, outcomeOf(t, with, p, at)); diff != "" || r.given.Load() != 0 {
		t.Error(diff, r.given.Load())
	}
	name := slices.Collect(maps.Keys(entries(t, dir)))[0]
	slot, variant, _ := strings.Cut(filepath.Base(name), "-")
	store := cache.Open(cache.Options{Dir: dir, MaxBytes: 1 << 20})
	content, ok := store.Read(slot, variant)
	wrong := bytes.Replace(content, []byte("web:1"), []byte("bad:1"), 1)
	if !ok || bytes.Equal(wrong, content) {
		t.Fatal("nothing to change is remembered")
	}
	store.Write(slot, variant, wrong)
	o := outcomeOf(t, with, p, at)
	if !strings.Contains(o.Err, "Deployment shop/web was Deployment shop/web, with another line") || strings.Contains(o.Err, "bad:1") {
		t.Errorf("got %q", o.Err)
	}
	if diff := cmp.Diff(first, outcomeOf(t, with, p, at)); diff != "" {
		t.Error(diff)
	}
}
