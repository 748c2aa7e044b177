// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/internal/conformance"
	"github.com/prerig/prerig/fn/manifest"
)

// sidecars are two for every pod, one on each side of Istio, that change whatever a sidecar can change.
const sidecars = `
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: sidecars}
spec:
  sidecars:
  - name: gate
    select: {default: Inject}
    template: |
      metadata:
        labels: {gate: "open"}
        annotations: {gate.example.com/workload: {{ quote .Workload.Name }}}
      spec:
        initContainers:
        - name: gate-setup
          image: example.com/gate:1
        - name: gate
          image: example.com/gate:1
          restartPolicy: Always
          startupProbe: {httpGet: {path: /ready, port: 9091}}
          env: [{name: CONTAINERS, value: "{{ range .Spec.Containers }}{{ if ne .Name "istio-proxy" }}{{ .Name }},{{ end }}{{ end }}"}]
          volumeMounts: [{name: gate, mountPath: /gate}]
        containers:
        - name: gate-log
          image: example.com/gate:1
          readinessProbe: {httpGet: {path: /ready, port: 9092}}
          ports: [{containerPort: 9092}]
        volumes: [{name: gate, emptyDir: {}}]
        imagePullSecrets: [{name: gate}]
        securityContext: {seccompProfile: {type: RuntimeDefault}}
    containers:
    - initContainers: true
      template: |
        env: [{name: GATE, value: "{{ .Container.Name }}"}]
        volumeMounts: [{name: gate, mountPath: /gate, readOnly: true}]
    order: {position: First}
    objects: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: gate}
      data: {level: high}
    guard: {annotations: {gate.example.com/inject: "false"}}
  - name: watch
    select: {default: Inject}
    template: |
      spec:
        containers:
        - name: watch
          image: example.com/watch:2
          args: ["{{ range .Spec.Containers }}{{ .Name }},{{ end }}"]
        shareProcessNamespace: true
    containers:
    - template: "env: [{name: WATCHED, value: yes-{{ .Container.Name }}}]"
    order: {position: Before, container: istio-proxy, istio: Outside}
    guard: {labels: {watch: "on"}}
`

func policy(t *testing.T, text string) *v1alpha1.InjectionPolicy {
	t.Helper()
	p, err := v1alpha1.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// with returns a copy of a policy with the sidecars, in a mode.
func with(p *v1alpha1.InjectionPolicy, sidecars []v1alpha1.Sidecar, mode v1alpha1.Mode) *v1alpha1.InjectionPolicy {
	out := *p
	out.Spec.Sidecars, out.Spec.Mode = sidecars, mode
	return &out
}

// stream returns the text of a report with the objects that sidecars add at its end.
func stream(r *engine.Report) []byte {
	out := text(r)
	for _, d := range r.Added {
		if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, '\n')
		}
		out = append(append(out, "---\n"...), d.Raw()...)
	}
	return out
}

// TestSidecarsOverTheCorpus has every workload of the corpus with two sidecars around Istio's proxy, for every version.
func TestSidecarsOverTheCorpus(t *testing.T) {
	both := policy(t, sidecars).Spec.Sidecars
	injected := 0
	each(t, func(t *testing.T, c *conformance.Case, p *v1alpha1.InjectionPolicy, input []byte) {
		p.Spec.Jobs = v1alpha1.JobsFollow // one policy is applied over the other
		around := with(p, both, v1alpha1.ModeInject)
		istio, withBoth, remove := compiled(t, with(p, nil, v1alpha1.ModeInject)), compiled(t, around), compiled(t, with(p, nil, v1alpha1.ModeRemove))
		items := parse(t, c.Input, input)
		all := apply(t, withBoth, items)
		for _, o := range all.Outcomes {
			if len(o.Sidecars) != 2 || o.Sidecars[0].Reason == "" {
				t.Errorf("%s has no reason for each sidecar: %+v", o.Ref, o.Sidecars)
			}
			injected++
		}
		out := stream(all)
		twice := stream(apply(t, withBoth, parse(t, c.Input, out)))
		if replaced(t.Name(), input) {
			sameObjects(t, "injecting twice is not injecting once", out, twice)
		} else {
			same(t, "injecting twice is not injecting once", out, twice)
		}

		// What removal leaves must not depend on whether there were sidecars around the proxy.
		istioOnly := text(apply(t, istio, items))
		removed := text(apply(t, remove, parse(t, c.Input, out)))
		same(t, "removing with sidecars is not removing without", text(apply(t, remove, parse(t, c.Input, istioOnly))), removed)

		// Another policy, and back.
		sameObjects(t, "another policy is not that policy from the original", istioOnly, text(apply(t, istio, parse(t, c.Input, out))))
		sameObjects(t, "the policy over another is not that from the original", out, stream(apply(t, withBoth, parse(t, c.Input, istioOnly))))
		checkOwn(t, around, remove, c.Input, input)
	})
	t.Logf("%d pods had two sidecars", injected)
}

// replaced says that Istio has replaced a container of the user without a trace, as versions up to 1.8 do, so that its text
// cannot come back.
func replaced(test string, input []byte) bool {
	old := slices.ContainsFunc([]string{"1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8"}, func(v string) bool { return strings.Contains(test, "/"+v+".") })
	return old && (bytes.Contains(input, []byte("name: istio-proxy")) || bytes.Contains(input, []byte("name: istio-init")))
}

// checkOwn sees that the sidecars without Istio leave no trace when they are taken out, and that with the record of the
// whole nothing else does.
func checkOwn(t *testing.T, p *v1alpha1.InjectionPolicy, remove *engine.Injector, path string, input []byte) {
	t.Helper()
	own := *p
	own.Spec.Istio = nil
	clean := text(apply(t, remove, parse(t, path, input)))
	out := stream(run(t, &own, parse(t, path, clean)))
	same(t, "removing the sidecars does not give the original", clean, text(run(t, with(&own, nil, v1alpha1.ModeRemove), parse(t, path, out))))

	whole := *p
	whole.Spec.Record = v1alpha1.RecordAnnotation
	in := compiled(t, &whole)
	out = stream(apply(t, in, parse(t, path, clean)))
	same(t, "with a record, injecting twice is not injecting once", out, stream(apply(t, in, parse(t, path, out))))
	sameObjects(t, "with a record, removing does not give the original", clean, text(run(t, with(&whole, nil, v1alpha1.ModeRemove), parse(t, path, out))))
}

func same(t *testing.T, what string, want, got []byte) {
	t.Helper()
	// Where the input ends without a line break, one comes with the objects that are appended.
	// A pod without a spec gets an empty one.
	clean := func(b []byte) []byte {
		return bytes.TrimRight(bytes.ReplaceAll(b, []byte("\nspec: {}"), []byte("\nspec:")), "\n")
	}
	want, got = clean(want), clean(got)
	if !bytes.Equal(want, got) {
		t.Errorf("%s:\n%s", what, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	}
}

// sameObjects compares what streams say: where Istio has changed a text of the user, removal gives its value back, but not
// its quotes and comments.
func sameObjects(t *testing.T, what string, want, got []byte) {
	t.Helper()
	if diff := cmp.Diff(objectsOf(t, want), objectsOf(t, got), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

// objectsOf decodes a stream. Null counts as nothing.
func objectsOf(t *testing.T, text []byte) []any {
	t.Helper()
	f, err := manifest.Parse("", text)
	if err != nil {
		t.Fatal(err)
	}
	var out []any
	for _, d := range f.Docs {
		obj, err := d.Object()
		if err != nil {
			t.Fatal(err)
		}
		if obj != nil {
			out = append(out, withoutNull(obj))
		}
	}
	return out
}

func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if m, isMap := e.(map[string]any); e != nil && !(isMap && len(m) == 0) {
				out[k] = withoutNull(e)
			}
		}
		return out
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return v
}
