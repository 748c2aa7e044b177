// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/build/cache"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// countingRenderer counts what it builds and what it only injects into.
type countingRenderer struct {
	*render.Pool
	built, given atomic.Int64
}

func (r *countingRenderer) Render(ctx context.Context, files tree.Reader, request render.Request) (*render.Response, error) {
	if request.Given != nil {
		r.given.Add(1)
	} else {
		r.built.Add(1)
	}
	return r.Pool.Render(ctx, files, request)
}

func newRenderer(t testing.TB) *countingRenderer {
	t.Helper()
	program, err := testprograms.RendererPath()
	if err != nil {
		t.Fatal(err)
	}
	pool, err := render.NewPool(render.Options{Warm: 2, Command: []string{program}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &countingRenderer{Pool: pool}
}

// aloneRenderer renders everything in a process of its own.
type aloneRenderer struct{ pool *render.Pool }

func (r aloneRenderer) Render(ctx context.Context, files tree.Reader, request render.Request) (*render.Response, error) {
	request.Trust = ""
	return r.pool.Render(ctx, files, request)
}

// newBuilders returns one that remembers in a directory and uses renderers again, and one that does neither.
func newBuilders(r *countingRenderer, dir string) (with, without *build.Builder) {
	without = &build.Builder{Renderer: aloneRenderer{r.Pool}, Limits: render.DefaultLimits(), Version: "1"}
	with = &build.Builder{Renderer: r, Limits: render.DefaultLimits(), Version: "1", Cache: &build.Cache{Store: cache.Open(cache.Options{Dir: dir, MaxBytes: 64 << 20})}}
	return with, without
}

func treeOf(t testing.TB, files map[string]string) *tree.Tree {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := b.Add(name, tree.File, []byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

func policyText(name, tag, function string) string {
	return "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata:\n  name: " + name + "\n" + function +
		"spec:\n  istio: {injector: {builtIn: istio, overrides: {global: {tag: " + tag + "}}}}\n  namespaces:\n  - {name: shop, labels: {istio-injection: enabled}}\n"
}

const ownFunction = "  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: prerig-fn}\n"

func deployment(name, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop} # of %[1]s
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - {name: app, image: "%[2]s", readinessProbe: {httpGet: {path: /, port: 80}}}
`, name, image)
}

// world is a source that changes at random, and pipelines that render it.
type world struct {
	rand      *rand.Rand
	files     map[string]string
	pipelines []*v1alpha1.RenderPipeline
	version   int
}

// kinds are the applications that there are: each writes its files, and returns how they are built.
var kinds = []func(w *world, dir, name string) v1alpha1.Build{
	func(w *world, dir, name string) v1alpha1.Build { // plain
		w.files[dir+"/app.yaml"] = deployment(name, w.image())
		return v1alpha1.Build{Path: dir}
	},
	func(w *world, dir, name string) v1alpha1.Build { // a base that is shared
		w.files[dir+"/app.yaml"] = deployment(name, w.image())
		w.files[dir+"/kustomization.yaml"] = "resources: [app.yaml, ../../base]\nnameSuffix: -" + name + "\n"
		return v1alpha1.Build{Path: dir}
	},
	func(w *world, dir, name string) v1alpha1.Build { // generators, and a field that is deprecated
		w.files[dir+"/app.yaml"] = deployment(name, w.image()) + "      volumes: [{name: c, configMap: {name: config}}]\n"
		w.files[dir+"/settings"] = w.image() + "\n"
		w.files[dir+"/kustomization.yaml"] = "resources: [app.yaml]\ncommonLabels: {team: one}\nconfigMapGenerator:\n- {name: config, namespace: shop, files: [settings]}\n"
		return v1alpha1.Build{Path: dir}
	},
	func(w *world, dir, name string) v1alpha1.Build { // the policy inside of the build, and a schema of its own
		w.files[dir+"/app.yaml"] = deployment(name, w.image())
		w.files[dir+"/kustomization.yaml"] = "resources: [app.yaml]\ntransformers: [../../policies/own]\n"
		if w.rand.IntN(2) == 0 {
			w.files[dir+"/kustomization.yaml"] += "openapi: {version: v1.21.2}\n"
		}
		return v1alpha1.Build{Path: dir}
	},
	func(w *world, dir, name string) v1alpha1.Build { // a package of kpt
		w.files[dir+"/app.yaml"] = deployment(name, w.image())
		w.files[dir+"/Kptfile"] = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: " + name + "}\n"
		return v1alpha1.Build{Path: dir}
	},
	func(w *world, dir, name string) v1alpha1.Build { // a chart
		w.files[dir+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"
		w.files[dir+"/values.yaml"] = "image: " + w.image() + "\n"
		w.files[dir+"/templates/app.yaml"] = strings.ReplaceAll(deployment(name, "{{ .Values.image }}"), "namespace: shop", "namespace: {{ .Release.Namespace }}")
		return v1alpha1.Build{Type: v1alpha1.BuildHelm, Path: ".", Helm: &v1alpha1.Helm{Chart: dir, ReleaseName: name, Namespace: "shop", KubeVersion: "1.34.0"}}
	},
	func(w *world, dir, name string) v1alpha1.Build { // a Secret
		w.files[dir+"/app.yaml"] = deployment(name, w.image())
		w.files[dir+"/kustomization.yaml"] = "resources: [app.yaml]\nsecretGenerator:\n- {name: s, literals: [a=" + w.image() + "]}\n"
		return v1alpha1.Build{Path: dir}
	},
}

func (w *world) image() string { return fmt.Sprintf("image:%d", w.rand.IntN(9)) }

// newWorld makes one with pipelines.
func newWorld(seed uint64, pipelines int) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 16)), files: map[string]string{
		"base/base.yaml": deployment("base", "base:1"), "base/kustomization.yaml": "resources: [base.yaml]\n",
		"policies/one.yaml": policyText("one", "1.29.0", ""), "policies/two.yaml": policyText("two", "1.28.0", ""),
		"policies/own/policy.yaml": policyText("own", "1.29.0", ownFunction), "policies/own/kustomization.yaml": "resources: [policy.yaml]\n",
	}}
	for i := range pipelines {
		name := fmt.Sprintf("app-%d", i)
		p := &v1alpha1.RenderPipeline{}
		p.Metadata.Name, p.Metadata.Namespace = name, []string{"one", "two"}[w.rand.IntN(2)]
		p.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example.com/" + []string{"a", "b"}[w.rand.IntN(2)]}
		if i > 0 && w.rand.IntN(4) == 0 {
			p.Spec.Build = w.pipelines[w.rand.IntN(i)].Spec.Build // the same for another cluster
		} else {
			p.Spec.Build = kinds[w.rand.IntN(len(kinds))](w, "apps/"+name, name)
		}
		for range w.rand.IntN(3) {
			p.Spec.Policies = append(p.Spec.Policies, v1alpha1.PolicyRef{Path: w.policy()})
		}
		w.pipelines = append(w.pipelines, p)
	}
	return w
}

func (w *world) policy() string {
	return []string{"policies/one.yaml", "policies/two.yaml"}[w.rand.IntN(2)]
}

// change changes something.
func (w *world) change() string {
	p := w.pipelines[w.rand.IntN(len(w.pipelines))]
	w.version++
	tag := fmt.Sprintf("1.29.%d", w.rand.IntN(5))
	switch w.rand.IntN(8) {
	case 0:
		w.files["policies/one.yaml"] = policyText("one", tag, "")
		return "a policy"
	case 1:
		w.files["policies/own/policy.yaml"] = policyText("own", tag, ownFunction)
		return "a policy inside of builds"
	case 2:
		w.files["base/base.yaml"] = deployment("base", w.image())
		return "the base"
	case 3:
		p.Spec.Policies = []v1alpha1.PolicyRef{{Path: w.policy()}}
		return "which policy is for " + p.Metadata.Name
	case 4:
		name := w.anyOf(".yaml")
		w.files[name] += fmt.Sprintf("# %d\n", w.rand.IntN(3))
		return name
	case 5:
		name := w.anyOf(".yaml")
		if strings.HasPrefix(name, "apps/") {
			delete(w.files, name)
		}
		return name + " is gone"
	case 6:
		name := w.anyOf("app.yaml")
		w.files[name] = strings.NewReplacer("image:1", "image:2", "image:3", "image:4", "image:5", "image:1").Replace(w.files[name])
		return "the image of " + name
	}
	dir := "apps/" + p.Metadata.Name
	w.files[dir+"/kustomization.yaml"] = "resources: [app.yaml]\nnamePrefix: x-\n"
	return "a kustomization for " + dir
}

func (w *world) anyOf(suffix string) string {
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(w.files)), func(name string) bool { return !strings.HasSuffix(name, suffix) })
	return all[w.rand.IntN(len(all))]
}
