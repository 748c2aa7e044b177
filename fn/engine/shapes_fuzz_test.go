// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/shape"
)

// fuzzedShapes injects by shapes and by itself, under one policy.
type fuzzedShapes struct {
	run  *shapeRun
	full func(*documentUnit)
	// known are shapes by their keys. An input of the fuzzer mostly has the key of an earlier one, and then needs one injection instead of three.
	known map[string]knownShape
}

// knownShape is a shape, nil for one that cannot be used, and the text that it was learned from.
type knownShape struct {
	learned *learnedShape
	text    string
}

func newFuzzedShapes(t testing.TB, p *v1alpha1.InjectionPolicy) *fuzzedShapes {
	t.Helper()
	in, err := New([]*v1alpha1.InjectionPolicy{p})
	if err != nil {
		t.Fatal(err)
	}
	s := readCluster(nil)
	plans, results := in.compilePolicies(s)
	run := in.newShapeRun(plans, s)
	if run == nil {
		t.Fatal(results)
	}
	return &fuzzedShapes{run, func(u *documentUnit) { in.injectUnit(u, plans, s) }, map[string]knownShape{}}
}

// unit returns the workload that a text is, and what it has in common with others; nil if it has no shape.
func (f *fuzzedShapes) unit(text string) (*documentUnit, *shape.Scan) {
	file, err := manifest.Parse("", []byte(text))
	if err != nil || len(file.Docs) != 1 {
		return nil, nil
	}
	units := flattenItems([]Item{{Doc: file.Docs[0]}})
	if len(units) != 1 || units[0].broken {
		return nil, nil
	}
	return units[0], f.run.scan(units[0])
}

// compare fails where two texts have one key, and the shape learned from the first gives another result for the second than it has by itself.
// It reports whether they have one key.
func (f *fuzzedShapes) compare(t *testing.T, one, other string) bool {
	u, s := f.unit(one)
	v, again := f.unit(other)
	if s == nil || again == nil || !bytes.Equal(s.Key, again.Key) {
		return false
	}
	found, ok := f.known[string(s.Key)]
	if !ok {
		before := *u
		f.full(u)
		found = knownShape{f.run.learn(newFirstSight(u, &before), &before, s, f.full), one}
		if len(f.known) < maxSeen {
			f.known[string(s.Key)] = found
		}
	}
	if found.learned == nil {
		return false
	}
	byShape := *v
	found.learned.apply(&byShape, again)
	f.full(v)
	if difference := unitDifference(&byShape, v); difference != "" {
		t.Fatalf("%s\n--- learned from\n%s\n--- used for\n%s", difference, found.text, other)
	}
	return true
}

// shapePolicies are policies whose templates use names in other ways than those of the built-in one.
func shapePolicies(t testing.TB) []*v1alpha1.InjectionPolicy {
	var out []*v1alpha1.InjectionPolicy
	for _, version := range []string{"", "1.28", "1.32"} {
		p := builtInPolicy(t)
		p.Spec.Istio.Version = version
		out = append(out, p)
	}
	custom, err := v1alpha1.Parse([]byte(namesPolicy))
	if err != nil {
		t.Fatal(err)
	}
	return append(out, custom)
}

// namesPolicy has templates that print names, and read some of them.
const namesPolicy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: names}
spec:
  istio:
    version: "1.28"
    injector:
      values: '{"global": {"hub": "h", "tag": "t", "proxy": {"image": "proxyv2"}}}'
      config: |
        policy: enabled
        defaultTemplates: [sidecar]
        templates:
          sidecar: |
            metadata:
              labels:
                copied: {{ index .ObjectMeta.Labels "app" | default .DeploymentMeta.Name | trunc 63 | quote }}
              annotations:
                name: {{ .DeploymentMeta.Name }}
                {{- if eq (index .ObjectMeta.Labels "tier") "front" }}
                tier: front
                {{- end }}
            spec:
              containers:
              - name: istio-proxy
                image: auto
                env:
                - name: NAME
                  value: {{ printf "%s/%s" (.DeploymentMeta.Namespace | default "none") .DeploymentMeta.Name }}
                - name: LONG
                  value: {{ .Spec.ServiceAccountName | upper | quote }}
                - name: LABELS
                  value: |
                    {{ toJSON .ObjectMeta.Labels }}
                {{- range .Spec.Containers }}
                {{- if ne .Name "helper" }}
                - name: IMAGE
                  value: {{ len .Args }}
                {{- end }}
                {{- end }}
`

// FuzzTwoWorkloadsOfOneKey searches for two texts with the same key that are injected in different ways. The second is the first with other
// values in the slots, and with one more change of the text.
func FuzzTwoWorkloadsOfOneKey(f *testing.F) {
	var all []*fuzzedShapes
	for _, p := range shapePolicies(f) {
		all = append(all, newFuzzedShapes(f, p))
	}
	for i := range 4 {
		f.Add(fmt.Sprintf(typicalWorkload, i, i), "other", "2.0.1", "x y", "old", "new", uint8(i))
	}
	f.Add(fmt.Sprintf(typicalWorkload, 1, 1), "helper", "front", "default", "main", "default", uint8(3))
	f.Fuzz(func(t *testing.T, text, a, b, c, old, replacement string, policy uint8) {
		if len(text) > 8<<10 {
			return
		}
		shapes := all[int(policy)%len(all)]
		_, s := shapes.unit(text)
		if s == nil {
			return
		}
		values := standIns(s, 0)
		for i, slot := range s.Slots {
			if v := []string{a, b, c, ""}[(i+int(policy))%4]; v != "" {
				values[slot.Value] = v
			}
		}
		other := s.With(values)
		shapes.compare(t, text, other)
		if old != "" {
			shapes.compare(t, text, strings.Replace(text, old, replacement, 1))
			shapes.compare(t, other, strings.Replace(other, old, replacement, 1))
		}
	})
}
