// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

const meshPolicy = "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata:\n  name: mesh\n%sspec:\n" +
	"  istio: {injector: {builtIn: istio, overrides: {global: {tag: 1.29.0}}}}\n  namespaces:\n  - {name: shop, labels: {istio-injection: enabled}}\n"

func smallApp() map[string]string {
	return map[string]string{
		"app/app.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n" +
			"    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - {name: app, image: \"web:1\", readinessProbe: {httpGet: {path: /, port: 80}}}\n",
		"app/kustomization.yaml":    "resources: [app.yaml]\nnamespace: shop\n",
		"own/kustomization.yaml":    "resources: [../app]\ntransformers: [../policy]\n",
		"policy/kustomization.yaml": "resources: [policy.yaml]\n",
		"policy/policy.yaml":        fmt.Sprintf(meshPolicy, "  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: prerig-fn}\n"),
	}
}

// chartRelease is a request for a release of the chart in a directory.
func chartRelease(directory string) render.Request {
	r := request(".")
	r.Type = v1alpha1.BuildHelm
	r.Helm = &v1alpha1.Helm{
		Chart: directory, ReleaseName: "web", Namespace: "shop", KubeVersion: "1.33.4",
		Hooks: v1alpha1.HooksKeep, Lookup: v1alpha1.ImpureRefuse, Impure: v1alpha1.ImpureRefuse,
	}
	return r
}

// renderOnce renders what it is asked first, says that it can go on, and ends in the middle of the next.
func renderOnce() {
	for n := 0; ; n++ {
		var head [5]byte
		if _, err := io.ReadFull(os.Stdin, head[:]); err != nil {
			os.Exit(1)
		}
		content := make([]byte, binary.BigEndian.Uint32(head[1:]))
		var request struct{ Mark string }
		if _, err := io.ReadFull(os.Stdin, content); err != nil || json.Unmarshal(content, &request) != nil {
			os.Exit(1)
		}
		send('O', []byte("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"a\"}\nnumber: "+fmt.Sprint(n)+"\n"))
		if n > 0 {
			os.Exit(0)
		}
		fmt.Fprint(os.Stderr, "a warning\n"+request.Mark)
		send('D', []byte(`{"lines":[],"again":true}`))
	}
}

// TestARendererThatFailsLaterIsNoHarm: what is wrong with a process that was used before is nothing that a render shows.
func TestARendererThatFailsLaterIsNoHarm(t *testing.T) {
	p := pool(t, render.Options{Command: []string{os.Args[0], "once"}})
	p.LetWait()
	r := request("app")
	r.Trust = "one"
	for range 3 {
		response, err := p.Render(ctx, tree.NewView(build(t, smallApp()), r.Limits.Read), r)
		if err != nil || text(response) != "number: 0\n" || !slices.Equal(response.Warnings, []string{"a warning"}) {
			t.Fatalf("got %+v, %v", response, err)
		}
		if len(p.Waiting()) != 1 {
			t.Errorf("%d processes wait", len(p.Waiting()))
		}
	}
}

// patch is one to a container.
const patch = "patches:\n- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web}\n" +
	"    spec: {template: {spec: {containers: [{name: second, image: \"second:1\"}]}}}\n"

// TestRenderersAreUsedAgain: by the same trust, as long as nothing is left behind in them, and with the same result.
func TestRenderersAreUsedAgain(t *testing.T) {
	files := smallApp()
	files["app/kustomization.yaml"] += "commonLabels: {a: b}\n" // is deprecated, which goes to standard error
	// So does this, by the standard library's log.
	files["app/kustomization.yaml"] += "vars: [{name: NEVER, objref: {apiVersion: apps/v1, kind: Deployment, name: web}}]\n"
	// Where the schema does not know Deployments, this patch has the one container in the place of all.
	files["app/kustomization.yaml"] += patch
	files["hidden/kustomization.yaml"] = "resources: [../app]\n\"open\\x61pi\": {path: schema.json}\n" + patch
	files["hidden/schema.json"] = `{"definitions": {}}`
	files["custom/kustomization.yaml"] = strings.Replace(files["hidden/kustomization.yaml"], "\\x61", "a", 1)
	files["custom/schema.json"] = files["hidden/schema.json"]
	files["schema/kustomization.yaml"] = "resources: [../app]\nopenapi: {version: v1.21.2}\n"
	files["broken/kustomization.yaml"] = "resources: [none.yaml]\n"
	files["chart/Chart.yaml"] = "apiVersion: v2\nname: chart\nversion: 1.0.0\n"
	files["chart/templates/a.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	files["urn/Chart.yaml"], files["urn/templates/a.yaml"] = files["chart/Chart.yaml"], files["chart/templates/a.yaml"]
	files["urn/values.schema.json"] = `{"properties": {"a": {"$ref": "urn:example:a"}}}` // Helm warns of it, once
	source := build(t, files)
	p := pool(t, render.Options{})
	p.LetWait()
	at := func(path, trust string) (*render.Response, error) {
		r := request(path)
		if path == "chart" || path == "urn" {
			r = chartRelease(path)
		}
		r.Trust, r.Policies = trust, []render.Policy{{YAML: fmt.Sprintf(meshPolicy, "")}}
		return p.Render(ctx, tree.NewView(source, r.Limits.Read), r)
	}
	want := map[string]*render.Response{}
	for _, path := range []string{"app", "own", "chart", "urn", "schema", "hidden", "custom"} {
		one, err := at(path, "")
		if err != nil || len(one.Warnings) == 0 != (path == "chart") || len(p.Waiting()) != 0 {
			t.Fatalf("%s: %+v, %v, %v", path, one, err, p.Waiting())
		}
		want[path] = one
	}
	if strings.Contains(text(want["custom"]), "web:1") || !strings.Contains(text(want["app"]), "web:1") {
		t.Fatalf("the schema makes no difference: %s", text(want["custom"]))
	}
	var used []int
	for _, step := range []struct {
		path, trust string
		waiting     int
		same        bool
	}{
		{"app", "one", 1, false}, {"app", "one", 1, true}, {"own", "one", 1, true}, {"chart", "one", 1, true}, {"app", "one", 1, true},
		{"app", "two", 2, false}, {"app", "two", 2, true}, {"app", "", 2, true}, {"schema", "two", 1, false}, {"app", "two", 2, false},
		{"hidden", "two", 1, false}, {"app", "two", 2, false}, {"custom", "two", 1, false}, {"app", "two", 2, false},
		{"urn", "two", 1, false}, {"urn", "two", 1, true}, {"app", "two", 2, false},
		{"broken", "two", 1, false}, {"app", "two", 2, false}, {"app", "three", 2, false}, {"app", "one", 2, false},
	} {
		got, err := at(step.path, step.trust)
		if (err != nil) != (step.path == "broken") {
			t.Fatalf("%+v: %v", step, err)
		}
		if want := want[step.path]; want != nil && (got.Digest() != want.Digest() || !slices.Equal(got.Warnings, want.Warnings)) {
			t.Errorf("%+v: got %v\n%s", step, got.Warnings, text(got))
		}
		now := p.Waiting()
		if len(now) != step.waiting || slices.Equal(now, used) != step.same {
			t.Errorf("%+v: %v wait, before it did %v", step, now, used)
		}
		used = now
	}
	p.Close()
	for _, pid := range used {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("%d has not ended", pid)
		}
	}
}

// notes are what a build asked until it was there.
type notes struct {
	begun, ended int
	asked        []tree.Question
}

func (n *notes) Begin() { n.begun, n.ended, n.asked = n.begun+1, 0, nil }
func (n *notes) End()   { n.ended++ }
func (n *notes) Note(q tree.Question, _ tree.Answer) {
	if n.ended == 0 {
		n.asked = append(n.asked, q)
	}
}

// TestARenderThatIsRepeatedIsKept: what is noted of it is what the build asked that is kept, and nothing of the one before.
func TestARenderThatIsRepeatedIsKept(t *testing.T) {
	files := smallApp()
	files["custom/kustomization.yaml"] = "resources: [../app]\nopenapi: {path: schema.json}\n" + patch
	files["custom/schema.json"] = `{"definitions": {}}`
	source := build(t, files)
	p := pool(t, render.Options{})
	p.LetWait()
	r := request("custom")
	keep := func(trust string) (*render.Response, *notes) {
		t.Helper()
		n := &notes{}
		r.Trust, r.Keep = trust, n
		response, err := p.Render(ctx, tree.NewView(source, r.Limits.Read), r)
		if err != nil || response.Built == nil || n.ended != 1 {
			t.Fatalf("%+v, %v, %+v", response, err, n)
		}
		return response, n
	}
	want, asked := keep("")
	other := request("app")
	other.Trust = "one"
	if _, err := p.Render(ctx, tree.NewView(source, other.Limits.Read), other); err != nil || len(p.Waiting()) != 1 {
		t.Fatal(err)
	}
	got, again := keep("one")
	if again.begun != 2 || !slices.Equal(again.asked, asked.asked) {
		t.Errorf("got %+v, want %+v", again, asked)
	}
	if !slices.Equal(got.Built.Items, want.Built.Items) {
		t.Errorf("got %+v, want %+v", got.Built.Items, want.Built.Items)
	}
}

// TestReadsOfARenderThatIsRepeatedCountOnce: a limit of what is read is that of one render.
func TestReadsOfARenderThatIsRepeatedCountOnce(t *testing.T) {
	files := smallApp()
	files["broken/kustomization.yaml"] = "resources: [large.yaml]\n"
	files["broken/large.yaml"] = "a: [\n#" + strings.Repeat("x", 4<<10) + "\n"
	source := build(t, files)
	p := pool(t, render.Options{})
	p.LetWait()
	r := request("app")
	r.Limits.Read.TotalBytes = 6 << 10
	view := tree.NewView(source, r.Limits.Read)
	broken := r
	broken.Path = "broken"
	_, want := p.Render(ctx, view, broken)
	r.Trust, broken.Trust = "one", "one"
	if _, err := p.Render(ctx, tree.NewView(source, r.Limits.Read), r); err != nil || len(p.Waiting()) != 1 {
		t.Fatal(err)
	}
	_, err := p.Render(ctx, tree.NewView(source, r.Limits.Read), broken)
	if want == nil || err == nil || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}

func processorTime() time.Duration {
	all := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			all += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return all
}

// BenchmarkRenderAgain tells the processor time of a render with all processes: in one of its own, in one that is used again, and with a
// build that was remembered, by a policy of the pipeline and by one that the kustomization names.
func BenchmarkRenderAgain(b *testing.B) {
	for _, inside := range []bool{false, true} {
		for _, trust := range []string{"", "one"} {
			for _, remembered := range []bool{false, true} {
				if inside && remembered {
					continue
				}
				b.Run(fmt.Sprintf("inside=%t/again=%t/remembered=%t", inside, trust != "", remembered), func(b *testing.B) {
					benchmarkRender(b, inside, trust, remembered)
				})
			}
		}
	}
}

func benchmarkRender(b *testing.B, inside bool, trust string, remembered bool) {
	p, err := render.NewPool(render.Options{Warm: 1})
	if err != nil {
		b.Fatal(err)
	}
	files := build(b, smallApp())
	r := request("app")
	r.Trust = trust
	if inside {
		r.Path = "own"
	} else {
		r.Policies = []render.Policy{{YAML: fmt.Sprintf(meshPolicy, "")}}
	}
	if remembered {
		keeping := r
		keeping.Keep = &notes{}
		first, err := p.Render(b.Context(), tree.NewView(files, r.Limits.Read), keeping)
		if err != nil || first.Built == nil {
			b.Fatal(err)
		}
		r.Given = first.Built
	}
	begin := processorTime()
	for b.Loop() {
		response, err := p.Render(b.Context(), tree.NewView(files, r.Limits.Read), r)
		if err != nil || !strings.Contains(text(response), "istio-proxy") {
			b.Fatal(err)
		}
	}
	p.Close() // only what has ended is counted
	b.ReportMetric(float64((processorTime()-begin).Microseconds())/float64(b.N), "cpu-µs/op")
}
