// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/manifest"
)

const everything = `{template: "metadata: {labels: {app: other, x: z}, annotations: {note: '1'}}\nspec: {initContainers: [{name: g, image: i, restartPolicy: Always}], containers: [{name: h, image: i}], volumes: [{name: gv, emptyDir: {}}], securityContext: {fsGroup: 1}, dnsConfig: {searches: [a]}, imagePullSecrets: [{name: s}]}\n",
	containers: [{initContainers: true, template: "env: [{name: A, value: changed}, {name: G, value: g}]\nvolumeMounts: [{name: gv, mountPath: /g}]\n"}], order: {position: First}, guard: {annotations: {guard: "on"}}}`

// through injects, records, and takes out again.
func through(t testing.TB, s *Sidecar, pod map[string]any, edit func(map[string]any)) map[string]any {
	t.Helper()
	req := Request{Pod: pod, Original: pod}
	got, err := s.Inject(req)
	if err != nil {
		t.Skip(err)
	}
	record, err := s.NewRecord(1, pod, got.Pod)
	if err != nil {
		t.Fatal(err)
	}
	annotated, err := Annotate(got.Pod, []Record{record})
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(annotated)
	}
	records, rest, err := Records(annotated)
	if err != nil || len(records) != 1 {
		t.Fatalf("got %d records, %v", len(records), err)
	}
	back, err := records[0].Remove(rest)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestRemove(t *testing.T) {
	s := compiled(t, everything)
	for name, pod := range map[string]string{
		"app":               app,
		"no metadata":       "{metadata: {}, spec: {containers: [{name: a}]}}",
		"empty annotations": "{metadata: {annotations: {}, labels: {}}, spec: {containers: [{name: a, env: []}]}}",
		"null annotations":  "{metadata: {annotations: null, creationTimestamp: null}, spec: {containers: [{name: a, env: null, ports: null}], volumes: null}}",
		"lists":             "{metadata: {}, spec: {initContainers: [], containers: [{name: a}], volumes: [], securityContext: {}, dnsConfig: {searches: [b]}}}",
		"same variable":     "{metadata: {labels: {app: web}}, spec: {containers: [{name: a, env: [{name: A, valueFrom: {fieldRef: {fieldPath: x}}}, {name: B}, {name: B}]}]}}",
		"unknown fields":    "{metadata: {future: {a: 1}}, spec: {future: [1], containers: [{name: a, future: x}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			pod := object(t, pod)
			if diff := cmp.Diff(pod, through(t, s, pod, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRemoveEdited keeps what somebody added to an injected pod.
func TestRemoveEdited(t *testing.T) {
	pod := object(t, "{metadata: {}, spec: {containers: [{name: a}]}}")
	back := through(t, compiled(t, everything), pod, func(injected map[string]any) {
		spec := injected["spec"].(map[string]any)
		for _, key := range []string{"initContainers", "containers", "volumes"} {
			list, _ := spec[key].([]any)
			spec[key] = append(list, map[string]any{"name": "later"})
		}
		injected["metadata"].(map[string]any)["annotations"].(map[string]any)["later"] = "yes"
		for _, c := range listOf(injected, "containers") {
			if c["name"] == "a" {
				c["env"] = append(c["env"].([]any), map[string]any{"name": "LATER"})
			}
		}
	})
	want := object(t, `{metadata: {annotations: {later: "yes"}}, spec: {containers: [{name: a, env: [{name: LATER}]}, {name: later}], initContainers: [{name: later}], volumes: [{name: later}]}}`)
	if diff := cmp.Diff(want, back); diff != "" {
		t.Error(diff)
	}
}

// TestRemoveRenamed does not bring back a container that somebody has renamed since.
func TestRemoveRenamed(t *testing.T) {
	pod := object(t, "{metadata: {}, spec: {containers: [{name: a}]}}")
	back := through(t, compiled(t, everything), pod, func(injected map[string]any) {
		for _, c := range listOf(injected, "containers") {
			if c["name"] == "a" {
				c["name"] = "b"
			}
		}
	})
	if got := names(back, "containers"); got != "b" {
		t.Errorf("got the containers %q", got)
	}
}

func TestBrokenRecord(t *testing.T) {
	for name, value := range map[string]string{
		"no JSON": "'{'", "no map": "'[]'", "no step": "'{\"istio\": \"Inside\"}'", "patch no map": "'{\"step\": 1, \"istio\": \"Inside\", \"patch\": 1}'", "no string": "1",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Records(object(t, "{metadata: {annotations: {sidecar.prerig.dev/gate: "+value+"}}}"))
			wantError(t, err, `metadata.annotations["sidecar.prerig.dev/gate"]: the record of the sidecar cannot be read`)
		})
	}
}

// FuzzRemove has any pod injected and taken back.
func FuzzRemove(f *testing.F) {
	f.Add(app)
	f.Add("{metadata: {annotations: {}, labels: null}, spec: {containers: [{name: a, env: [{name: A}, {name: A}]}, {name: a}], volumes: [{name: gv, emptyDir: {}}]}}")
	f.Add("{spec: {initContainers: [{name: istio-init}], containers: [{}], securityContext: null}}")
	s := compiled(f, everything)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := manifest.Decode([]byte(text))
		pod, ok := v.(map[string]any)
		if err != nil || !ok {
			t.Skip()
		}
		if _, ok := pod["metadata"].(map[string]any); !ok {
			pod["metadata"] = map[string]any{}
		}
		records, _, err := Records(pod)
		if err != nil || len(records) > 0 {
			t.Skip()
		}
		if diff := cmp.Diff(pod, through(t, s, pod, nil)); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzParameter sees that a parameter gives a value within its bounds or an error, and the same every time.
func FuzzParameter(f *testing.F) {
	for _, text := range []string{"", "1", "-1", "1e3", "5s", "1Mi", "a,b", "{a: 1}", "true", "9223372036854775808"} {
		f.Add(text)
	}
	s := compiled(f, `{parameters: [{name: s, annotation: a}, {name: i, annotation: a, type: int, minimum: "-5", maximum: "5"}, {name: num, annotation: a, type: number, maximum: "5"}, {name: b, annotation: a, type: bool},
		{name: d, annotation: a, type: duration, minimum: 1s}, {name: q, annotation: a, type: quantity, maximum: 1Gi}, {name: l, annotation: a, type: list, pattern: "[a-z]*"}, {name: j, annotation: a, type: json}, {name: f, prefix: a, type: int}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range s.parameters {
			v, err := p.parseText(text)
			if again, errAgain := p.parseText(text); (err == nil) != (errAgain == nil) || err == nil && !cmp.Equal(v, again) {
				t.Errorf("%s: %v, then %v", p.spec.Name, v, again)
			}
			if i, ok := v.(int64); ok && err == nil && p.spec.Name == "i" && (i < -5 || i > 5) {
				t.Errorf("%d is outside", i)
			}
		}
	})
}

// FuzzTemplate sees that no template stops the process.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"{{ .Values }}", "{{ include \"a\" . }}", "{{ range .Spec.Containers }}{{ .Name }}{{ end }}", "spec: {containers: [{name: x, $patch: delete}]}",
		"{{ define \"a\" }}{{ template \"a\" }}{{ end }}", "spec: {$setElementOrder/containers: [1]}", "metadata: {labels: {a: null}}", "order: {position: First}", "spec: {containers: [{$patch: replace}]}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sp := spec(t, "{values: {a: 1}}")
		sp.Template, sp.Objects = text, text
		s, err := New(sp)
		if err != nil {
			return
		}
		req := request(t, app)
		if _, err := s.Inject(req); err != nil {
			return
		}
		if diff := cmp.Diff(object(t, app), req.Pod); diff != "" {
			t.Error(diff)
		}
	})
}
