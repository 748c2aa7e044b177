// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// verifyOne compares a bare Pod of the namespace shop with what is committed for it.
func verifyOne(t *testing.T, committed, found string, s *Snapshot, options Options) Pod {
	t.Helper()
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	full := func(text string) map[string]any {
		obj := parse(t, text)
		obj["apiVersion"], obj["kind"] = "v1", "Pod"
		if obj["metadata"] == nil {
			obj["metadata"] = map[string]any{}
		}
		meta := podmap.MapAt(obj, "metadata")
		meta["name"], meta["namespace"] = "web", "shop"
		return obj
	}
	w, err := NewWorkload(registry, full(committed), "", "f")
	if err != nil || w == nil {
		t.Fatal(w, err)
	}
	s.Add(full(found))
	options.Registry = registry
	r, err := Verify(t.Context(), s, commits{{w.Ref: w}}, options)
	if err != nil || len(r.Pods) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.Pods[0]
}

// fieldsOf are the fields in which a pod differs.
func fieldsOf(p Pod) string {
	var out []string
	for _, d := range p.Differences {
		out = append(out, d.Field)
	}
	return strings.Join(out, " ")
}

// TestUnknownFields compares fields that the types do not have by their values.
func TestUnknownFields(t *testing.T) {
	const container = `containers: [{name: a, image: "a:1"}]`
	for name, c := range map[string]struct {
		committed, found string
		state            State
		fields           string
	}{
		"the same":          {`spec: {newGuard: Strict, ` + container + `}`, `spec: {newGuard: Strict, ` + container + `}`, Current, ""},
		"another value":     {`spec: {newGuard: Strict, ` + container + `}`, `spec: {newGuard: "Off", ` + container + `}`, Changed, "spec.newGuard"},
		"not committed":     {`spec: {` + container + `}`, `spec: {newGuard: "Off", ` + container + `}`, Changed, "spec.newGuard"},
		"a map":             {`spec: {newGuard: {a: [1, 2]}, ` + container + `}`, `spec: {newGuard: {a: [1, 2]}, ` + container + `}`, Current, ""},
		"in a map":          {`spec: {newGuard: {a: [1, 2]}, ` + container + `}`, `spec: {newGuard: {a: [1, 3]}, ` + container + `}`, Changed, "spec.newGuard"},
		"a name with dots":  {`spec: {"new.guard": a, ` + container + `}`, `spec: {"new.guard": b, ` + container + `}`, Changed, "spec.new.guard"},
		"in another place":  {`spec: {volumes: [{name: x, emptyDir: {new: 1}}, {name: w, emptyDir: {}}], ` + container + `}`, `spec: {volumes: [{name: w, emptyDir: {}}, {name: x, emptyDir: {new: 1}}], ` + container + `}`, Current, ""},
		"of another volume": {`spec: {volumes: [{name: x, emptyDir: {new: 1}}, {name: w, emptyDir: {}}], ` + container + `}`, `spec: {volumes: [{name: w, emptyDir: {new: 1}}, {name: x, emptyDir: {}}], ` + container + `}`, Changed, "spec.volumes[w].emptyDir.new"},
	} {
		pod := verifyOne(t, c.committed, c.found, &Snapshot{}, Options{})
		if pod.State != c.state || fieldsOf(pod) != c.fields {
			t.Errorf("%s: %s, %q %s", name, pod.State, fieldsOf(pod), pod.Message)
		}
	}
	ignored := verifyOne(t, `spec: {`+container+`}`, `spec: {new: 1, `+container+`}`, &Snapshot{}, Options{Ignore: []string{"spec.new"}})
	if ignored.State != Current {
		t.Errorf("ignored: %s", ignored.State)
	}
}

// TestDroppedFieldsAreNoNames excuses no removal for the name of what is removed.
func TestDroppedFieldsAreNoNames(t *testing.T) {
	const volumes = `volumes: [{name: tool, image: {reference: "t:1"}}]`
	for name, c := range map[string]struct {
		committed, found, version, fields string
	}{
		"the volume of an image": {`spec: {` + volumes + `, containers: [{name: a, volumeMounts: [{name: tool, mountPath: /t}]}]}`, `spec: {containers: [{name: a}]}`, "v1.32.0", ""},
		"the same, kept by newer": {`spec: {` + volumes + `, containers: [{name: a, volumeMounts: [{name: tool, mountPath: /t}]}]}`, `spec: {containers: [{name: a}]}`, "v1.36.0",
			"spec.containers[a].volumeMounts[/t] spec.volumes[tool]"},
		"a container of its name":  {`spec: {` + volumes + `, containers: [{name: a}, {name: tool}]}`, `spec: {containers: [{name: a}]}`, "v1.32.0", "spec.containers[tool]"},
		"a variable of its name":   {`spec: {` + volumes + `, containers: [{name: a, env: [{name: tool, value: x}]}]}`, `spec: {containers: [{name: a}]}`, "v1.32.0", "spec.containers[a].env[tool]"},
		"a field":                  {`spec: {hostnameOverride: x, containers: [{name: a}]}`, `spec: {containers: [{name: a}]}`, "v1.36.0", ""},
		"a variable of that name":  {`spec: {containers: [{name: a, env: [{name: stopSignal, value: x}]}]}`, `spec: {containers: [{name: a}]}`, "v1.36.0", "spec.containers[a].env[stopSignal]"},
		"a container of that name": {`spec: {containers: [{name: a}, {name: stopSignal}]}`, `spec: {containers: [{name: a}]}`, "v1.36.0", "spec.containers[stopSignal]"},
	} {
		pod := verifyOne(t, c.committed, c.found, &Snapshot{KubernetesVersion: c.version}, Options{})
		if fieldsOf(pod) != c.fields {
			t.Errorf("%s: %s, %q, want %q", name, pod.State, fieldsOf(pod), c.fields)
		}
	}
}
