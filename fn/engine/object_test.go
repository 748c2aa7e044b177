// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// withObjects adds a ConfigMap for each workload, or one for all of them.
const withObjects = `
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: objects}
spec:
  sidecars:
  - name: gate
    select: {rules: [{annotations: {matchLabels: {gate: "on"}}, action: Inject}]}
    parameters:
    - {name: name, annotation: gate-config, default: gate}
    - {name: level, annotation: gate-level, default: high}
    template: "spec: {containers: [{name: gate, image: 'example.com/gate:1'}]}"
    objects: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: {{ .Params.name }}}
      data: {level: {{ .Params.level }}}
`

func deployment(name, annotations string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: shop}\nspec:\n  template:\n    metadata:\n      annotations: {" + annotations +
		"}\n    spec:\n      containers:\n      - {name: app, image: a}\n"
}

// try applies a policy in a mode and gives the output with the added objects, and the report.
func try(t *testing.T, text string, mode v1alpha1.Mode, input string) (string, *engine.Report) {
	t.Helper()
	in, err := engine.New([]*v1alpha1.InjectionPolicy{with(policy(t, text), policy(t, text).Spec.Sidecars, mode)})
	if err != nil {
		t.Fatal(err)
	}
	report, err := in.Run(t.Context(), parse(t, "in.yaml", []byte(input)))
	if err != nil {
		t.Fatal(err)
	}
	sameOneByOne(t, in, input, report)
	return string(stream(report)), report
}

// sameOneByOne makes sure that RunEach gives what Run gives, each document once.
func sameOneByOne(t *testing.T, in *engine.Injector, input string, want *engine.Report) {
	t.Helper()
	items := parse(t, "in.yaml", []byte(input))
	changes := manifest.NewChanges(len(items))
	var mu sync.Mutex
	taken := map[int]bool{}
	report, err := in.RunEach(t.Context(), items, func(i int, d *manifest.Document) {
		mu.Lock()
		defer mu.Unlock()
		if taken[i] {
			t.Errorf("document %d is taken twice", i)
		}
		taken[i] = true
		changes.Put(i, d)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range report.Items {
		if taken[i] && report.Items[i].Doc.Text() != items[i].Doc.Text() {
			t.Errorf("document %d is taken and replaced", i)
		}
		report.Items[i].Doc = changes.Or(i, report.Items[i].Doc)
	}
	if got, want := string(stream(report)), string(stream(want)); got != want {
		t.Errorf("document by document it gives\n%s\nwant\n%s", got, want)
	}
	if !reflect.DeepEqual(report.Results, want.Results) {
		t.Errorf("document by document the results are\n%v\nwant\n%v", report.Results, want.Results)
	}
}

func errorsOf(r *engine.Report) string {
	var out []string
	for _, e := range r.Results {
		if e.Severity == result.Error {
			out = append(out, e.String())
		}
	}
	return strings.Join(out, "\n")
}

func TestObjectsOfSeveralWorkloads(t *testing.T) {
	input := deployment("a", "gate: 'on'") + "---\n" + deployment("b", "gate: 'on'") + "---\n" + deployment("c", "gate: 'on', gate-config: own")
	out, report := try(t, withObjects, v1alpha1.ModeInject, input)
	if len(report.Added) != 2 || strings.Count(out, "kind: ConfigMap") != 2 || strings.Count(out, "prerig.dev/sidecar: gate") != 2 || strings.Count(out, "namespace: shop\ndata") != 2 {
		t.Errorf("got %d objects:\n%s", len(report.Added), out)
	}
	twice, _ := try(t, withObjects, v1alpha1.ModeInject, out)
	same(t, "twice is not once", []byte(out), []byte(twice))
	back, _ := try(t, withObjects, v1alpha1.ModeRemove, out)
	same(t, "removing does not give the input", []byte(input), []byte(back))
	if _, r := try(t, withObjects, v1alpha1.ModeCheck, out); r.Failed() {
		t.Errorf("check of the output: %v", errorsOf(r))
	}
}

func TestObjectReplacedAndDropped(t *testing.T) {
	first, _ := try(t, withObjects, v1alpha1.ModeInject, deployment("a", "gate: 'on'"))
	// Somebody has edited the object, with a comment.
	edited := strings.Replace(first, "level: high", "level: low # for now", 1)
	again, _ := try(t, withObjects, v1alpha1.ModeInject, edited)
	if !strings.Contains(again, "level: high # for now") {
		t.Errorf("the object was not replaced in place:\n%s", again)
	}
	other, r := try(t, withObjects, v1alpha1.ModeInject, strings.Replace(first, "gate: 'on'", "gate: 'on', gate-config: own", 1))
	if strings.Contains(other, "  name: gate\n  namespace") || !strings.Contains(other, "  name: own\n") {
		t.Errorf("the object of another name is not alone (%s):\n%s", errorsOf(r), other)
	}
	gone, _ := try(t, withObjects, v1alpha1.ModeInject, strings.Replace(first, "gate: 'on'", "gate: 'off'", 1))
	if strings.Contains(gone, "ConfigMap") || strings.Contains(gone, "sidecar.prerig.dev") {
		t.Errorf("something is left:\n%s", gone)
	}
	_, r = try(t, withObjects, v1alpha1.ModeCheck, edited)
	if !strings.Contains(errorsOf(r), "ConfigMap shop/gate") || !strings.Contains(errorsOf(r), "not what the sidecar adds") {
		t.Errorf("check: %s", errorsOf(r))
	}
	_, r = try(t, withObjects, v1alpha1.ModeCheck, first[:strings.Index(first, "---")])
	if !strings.Contains(errorsOf(r), "it is missing: the sidecar gate of Deployment shop/a adds it") {
		t.Errorf("check without the object: %s", errorsOf(r))
	}
	_, r = try(t, withObjects, v1alpha1.ModeCheck, strings.Replace(first, "gate: 'on'", "gate: 'off'", 1))
	if !strings.Contains(errorsOf(r), "no sidecar adds this object any more") {
		t.Errorf("check of what is left over: %s", errorsOf(r))
	}
}

func TestObjectErrors(t *testing.T) {
	const own = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: gate, namespace: shop}\n"
	for name, tc := range map[string]struct{ policy, input, want string }{
		"differing":   {withObjects, deployment("a", "gate: 'on'") + "---\n" + deployment("b", "gate: 'on', gate-level: low"), "ConfigMap shop/gate: the sidecar gate of Deployment shop/a and the sidecar gate of Deployment shop/b both add it, and differently"},
		"not its own": {withObjects, deployment("a", "gate: 'on'") + own, "this one is not the sidecar's"},
		"workload":    {strings.Replace(strings.Replace(withObjects, "kind: ConfigMap", "kind: Deployment", 1), "apiVersion: v1\n", "apiVersion: apps/v1\n", 1), deployment("a", "gate: 'on'"), "a sidecar cannot add workloads"},
		"template":    {strings.Replace(withObjects, "{{ .Params.level }}", "{{ .Params.levle }}", 1), deployment("a", "gate: 'on'"), `injecting sidecar gate: rendering template "objects", line 4`},
		"parameter":   {strings.Replace(withObjects, "default: high", "default: high, enum: [high]", 1), deployment("a", "gate: 'on', gate-level: low"), `in.yaml:7: Deployment shop/a spec.template.metadata.annotations.gate-level: injecting sidecar gate: metadata.annotations.gate-level: "low" is not one of high`},
	} {
		t.Run(name, func(t *testing.T) {
			out, r := try(t, tc.policy, v1alpha1.ModeInject, tc.input)
			if !strings.Contains(strings.ReplaceAll(errorsOf(r), `["gate-level"]`, ".gate-level"), tc.want) || len(r.Added) > 0 {
				t.Errorf("got %q and %d objects, want %q:\n%s", errorsOf(r), len(r.Added), tc.want, out)
			}
		})
	}
}

// TestObjectsOfAFailedRun leaves what an earlier run added alone where a workload fails.
func TestObjectsOfAFailedRun(t *testing.T) {
	first, _ := try(t, withObjects, v1alpha1.ModeInject, deployment("a", "gate: 'on'"))
	broken := strings.Replace(first, "gate: 'on'", "gate: 1", 1)
	out, r := try(t, withObjects, v1alpha1.ModeInject, broken)
	if !r.Failed() || out != broken {
		t.Errorf("got %s:\n%s", errorsOf(r), out)
	}
}

// TestObjectInList takes an object out of a List.
func TestObjectInList(t *testing.T) {
	const list = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: own # mine
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: gate
    annotations: {prerig.dev/sidecar: gate}
`
	out, _ := try(t, withObjects, v1alpha1.ModeInject, list)
	if want := list[:strings.LastIndex(list, "- apiVersion")]; out != want {
		t.Errorf("got\n%s", out)
	}
}

// TestSidecarResourceList goes through the function's own door: objects are added, and taken out again.
func TestSidecarResourceList(t *testing.T) {
	text := func(mode, items string) string {
		config := strings.Replace(strings.TrimSpace(withObjects), "spec:\n", "spec:\n  mode: "+mode+"\n", 1)
		return "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n  " + strings.ReplaceAll(config, "\n", "\n  ") + "\nitems:\n" + items
	}
	items := "- " + strings.ReplaceAll(strings.TrimSuffix(deployment("a", "gate: 'on'"), "\n"), "\n", "\n  ") + "\n"
	var out, stderr bytes.Buffer
	if err := fn.Execute(t.Context(), strings.NewReader(text("Inject", items)), &out, &stderr); err != nil {
		t.Fatal(err, stderr.String())
	}
	injected := out.String()
	if strings.Count(injected, "prerig.dev/sidecar: gate") != 1 || strings.Count(injected, "name: gate, image") > 1 {
		t.Fatalf("got\n%s", injected)
	}
	out.Reset()
	if err := fn.Execute(t.Context(), strings.NewReader(strings.Replace(injected, "mode: Inject", "mode: Remove", 1)), &out, &stderr); err != nil {
		t.Fatal(err, stderr.String())
	}
	removed := out.String()
	if i := strings.Index(removed, "\nitems:\n"); i < 0 || !strings.HasPrefix(removed[i+len("\nitems:\n"):], items) || strings.Contains(removed, "prerig.dev/sidecar: gate") {
		t.Errorf("got\n%s", removed)
	}
}

// TestSeveralPolicies has the order of the policies for sidecars on the same side, and warns of what is lost when policies
// are run one after the other.
func TestSeveralPolicies(t *testing.T) {
	one := func(name, side string) *v1alpha1.InjectionPolicy {
		return policy(t, "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: "+name+"}\nspec:\n  sidecars:\n  - name: "+name+
			"\n    select: {default: Inject}\n    template: \"spec: {containers: [{name: "+name+", image: 'example.com/i:1', args: ['{{ range .Spec.Containers }}{{ .Name }} {{ end }}']}]}\"\n    order: {istio: "+side+"}\n")
	}
	mesh := policy(t, "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {injector: {builtIn: istio}, nativeSidecars: Disabled}}\n")
	all := func(input string, ps ...*v1alpha1.InjectionPolicy) (string, *engine.Report) {
		in, err := engine.New(ps)
		if err != nil {
			t.Fatal(err)
		}
		r, err := in.Run(t.Context(), parse(t, "in.yaml", []byte(input)))
		if err != nil {
			t.Fatal(err)
		}
		return string(stream(r)), r
	}
	out, r := all(deployment("a", ""), one("x", "Outside"), mesh, one("p", "Inside"), one("q", "Inside"))
	for _, want := range []string{"'app '", "'app p '", "'app p q istio-proxy '"} {
		if !strings.Contains(strings.ReplaceAll(out, "\"", "'"), strings.Trim(want, "'")) {
			t.Errorf("no container saw %s (%s):\n%s", want, errorsOf(r), out)
		}
	}
	if len(r.Outcomes) != 1 || len(r.Outcomes[0].Sidecars) != 3 || r.Outcomes[0].Sidecars[0].Name != "x" || r.Outcomes[0].Action != engine.Injected {
		t.Errorf("got the outcome %+v", r.Outcomes)
	}
	later, r := all(out, one("p", "Inside"))
	only, _ := all(deployment("a", ""), one("p", "Inside"))
	same(t, "the policy over others is not that from the original", []byte(only), []byte(later))
	for _, want := range []string{"the sidecar x was taken out: no policy of this run has it", "the sidecar q was taken out", "Istio's proxy was taken out"} {
		if !strings.Contains(results(r), want) {
			t.Errorf("no warning %q in\n%s", want, results(r))
		}
	}
	if _, r := all(deployment("a", ""), one("p", "Inside"), one("p", "Outside")); !strings.Contains(errorsOf(r), "the policies p and p both inject a sidecar p here") {
		t.Errorf("got %s", errorsOf(r))
	}
}

func results(r *engine.Report) string {
	var out []string
	for _, e := range r.Results {
		out = append(out, e.String())
	}
	return strings.Join(out, "\n")
}

// TestSidecarImages pins the images of sidecars, and only theirs.
func TestSidecarImages(t *testing.T) {
	text := strings.Replace(withObjects, "spec:\n", "spec:\n  images:\n    onMissing: Fail\n    pins: {\"example.com/gate:1\": \"example.com/gate@sha256:"+strings.Repeat("a", 64)+"\"}\n", 1)
	out, r := try(t, text, v1alpha1.ModeInject, deployment("a", "gate: 'on'"))
	if r.Failed() || !strings.Contains(out, "image: example.com/gate@sha256:aaaa") {
		t.Errorf("got %s\n%s", errorsOf(r), out)
	}
	_, r = try(t, strings.Replace(text, "gate:1\":", "gate:2\":", 1), v1alpha1.ModeInject, deployment("a", "gate: 'on'"))
	if !strings.Contains(errorsOf(r), "example.com/gate:1") {
		t.Errorf("got %s", errorsOf(r))
	}
}
