// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"
	"strings"
	"testing"
)

// rulesFor returns rules under which every field is free, but for some words.
func rulesFor(reserved ...string) *Rules {
	return &Rules{
		Free:           func(Field) bool { return true },
		FreeLabel:      func(key string) bool { return key != "read" },
		Reserved:       func(name string) bool { return slices.Contains(reserved, name) },
		KnownNamespace: func(name string) bool { return name == "known" },
	}
}

const workload = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: front-1
  namespace: team-2
  annotations:
    config.kubernetes.io/index: '1'
    config.kubernetes.io/path: 'front/1.yaml'
spec:
  replicas: 3
  template:
    metadata:
      labels:
        app: front-1
        read: other-9
    spec:
      initContainers:
      - name: prepare
        image: x/init:2
        args:
        - wait
      containers:
      # the first
      - name: main
        image: "x/y:2"
        args:
        - --listen=:8080
        env:
        - name: SIZE
          value: '12'
        - name: TEXT
          value: |
            name: inside
        resources:
          limits: {cpu: 1}
          requests:
            cpu: 250m
`

// values returns the values of a text's slots, or nil if it has no key.
func values(text string, column int, reserved ...string) []string {
	s := NewScan(rulesFor(reserved...))
	if !s.Read(text, column) {
		return nil
	}
	var out []string
	for _, slot := range s.Slots {
		out = append(out, s.Values[slot.Value])
	}
	return out
}

func TestSlots(t *testing.T) {
	got := values(workload, 0)
	want := []string{"front-1", "team-2", "1", "front/1.yaml", "3", "front-1", "prepare", "x/init:2", "main", "x/y:2", "--listen=:8080", "12", "250"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	indented := strings.TrimPrefix(strings.ReplaceAll("  "+workload, "\n", "\n  "), "  ")
	if got := values(strings.TrimSuffix(indented, "  "), 2); !slices.Equal(got, want) {
		t.Errorf("as an element of a list: got %q, want %q", got, want)
	}
}

// TestValuesInTheKey lists values that are no slots, as a value of another text could have another meaning.
func TestValuesInTheKey(t *testing.T) {
	for _, change := range []struct{ old, new, value string }{
		{"front-1", "Front", "Front"},
		{"front-1", "front--1", "front--1"},
		{"front-1", strings.Repeat("front", 9), strings.Repeat("front", 9)},
		{"front-1", "reserved", "reserved"},
		{"front-1", "app", "app"}, // it is a key, too
		{"app: front-1", "app: 1.5", "1.5"},
		{"app: front-1", "app: \"no\"", "no"},
		{"app: front-1", "app: 2001-01-01", "2001-01-01"},
		{"app: front-1", "app: 1_000", "1_000"},
		{"app: front-1", "app: 0x1.2.3", "0x1.2.3"},
		{"app: front-1", "app: [a]", "[a]"},
		{"team-2", "known", "known"},
		{"replicas: 3", "replicas: 0", "0"},
		{"replicas: 3", "replicas: \"3\"", "3"},
		{"replicas: 3", "replicas: 03", "03"},
		{"250m", "2.5", "2.5"},
		{"250m", "abc", "abc"},
		{"250m", "2", "2"},
		{"\"x/y:2\"", "12", "12"},
		{"\"x/y:2\"", "registry/istio/proxyv2:1", "registry/istio/proxyv2:1"},
		{"'12'", "8080", "8080"},
		{"'12'", "yes", "yes"},
		{"'12'", "\"a'b\"", "a'b"},
		{"--listen=:8080", "8080", "8080"},
	} {
		text := strings.Replace(workload, change.old, change.new, 1)
		if text == workload {
			t.Fatalf("%q is not in the text", change.old)
		}
		s := NewScan(rulesFor("reserved"))
		if !s.Read(text, 0) {
			t.Errorf("with %q: there is no key", change.new)
			continue
		}
		for _, slot := range s.Slots {
			if s.Values[slot.Value] == change.value && strings.HasPrefix(text[slot.Start:], change.value) && !strings.Contains(string(s.Key), change.value) {
				t.Errorf("with %q: it is a slot", change.new)
			}
		}
		if !strings.Contains(string(s.Key), change.value) {
			t.Errorf("with %q: it is not in the key", change.new)
		}
	}
}

// TestTextsWithoutAKey lists texts that the scan must not take for what they seem to be.
func TestTextsWithoutAKey(t *testing.T) {
	for name, change := range map[string][2]string{
		"an anchor":                        {"name: front-1", "name: &a front-1"},
		"an alias":                         {"name: front-1", "name: *a"},
		"a tag":                            {"name: front-1", "name: !!str front-1"},
		"a merge key":                      {"  name: front-1", "  <<: {name: front-1}"},
		"a quoted key":                     {"  name: front-1", "  \"name\": front-1"},
		"an escape":                        {"name: front-1", `name: "front\x2d1"`},
		"a quote in a quote":               {"'12'", "'it''s'"},
		"a scalar over two lines":          {"name: front-1", "name: front-1\n    more"},
		"a quoted scalar over two lines":   {"name: front-1", "name: \"front-1\n    more\""},
		"a tab":                            {"name: front-1", "name:\tfront-1"},
		"a carriage return":                {"name: front-1", "name: front-1\r"},
		"a line break of Unicode":          {"# the first", "# the first\u2028"},
		"metadata in flow style":           {"metadata:\n  name: front-1\n", "metadata: {name: front-1}\nx:\n"},
		"a spec that is null":              {"    spec:\n      initContainers:", "    spec: null\n    x:\n      initContainers:"},
		"no metadata":                      {"metadata:\n  name: front-1\n", "metadata:\nx:\n"},
		"a namespace that is null":         {"namespace: team-2", "namespace: ~"},
		"a path that is not simple":        {"'front/1.yaml'", "|\n      front/1.yaml"},
		"an index that is no text":         {"'1'", "1"},
		"the path of annotations in flow":  {"annotations:\n", "annotations: {config.kubernetes.io/path: x}\n  x:\n"},
		"a collection over two lines":      {"{cpu: 1}", "{cpu: 1,\n            memory: 1}"},
		"a second document":                {"spec:\n  replicas", "---\nspec:\n  replicas"},
		"a dash in a dash":                 {"- --listen=:8080", "- - listen"},
		"a mapping in a scalar":            {"- --listen=:8080", "- a b: c"},
		"a sequence where a mapping comes": {"spec:\n  replicas: 3", "spec:\n- replicas: 3"},
	} {
		text := strings.Replace(workload, change[0], change[1], 1)
		if text == workload {
			t.Fatalf("%s: %q is not in the text", name, change[0])
		}
		if got := values(text, 0); got != nil {
			t.Errorf("%s: the slots are %q", name, got)
		}
	}
}

// TestKeysDiffer lists pairs that must not be one shape.
func TestKeysDiffer(t *testing.T) {
	key := func(text string) string {
		s := NewScan(rulesFor())
		if !s.Read(text, 0) {
			t.Fatalf("no key:\n%s", text)
		}
		return string(s.Key)
	}
	two := strings.Replace(workload, "      - name: main\n", "      - name: main\n        image: x/z:1\n      - name: second\n", 1)
	for name, pair := range map[string][2]string{
		"another equality": {workload, strings.Replace(workload, "app: front-1", "app: front-2", 1)},
		"another style":    {workload, strings.Replace(workload, "'12'", "\"12\"", 1)},
		"a version":        {workload, strings.Replace(workload, "app: front-1", "app: 1.2.3", 1)},
		"another unit":     {workload, strings.Replace(workload, "250m", "250Mi", 1)},
		"another order":    {two, strings.Replace(two, "name: main", "name: tail", 1)},
		"a key in a name":  {workload, strings.ReplaceAll(workload, "front-1", "container")},
		"another comment":  {workload, strings.Replace(workload, "# the first", "# the only", 1)},
	} {
		if key(pair[0]) == key(pair[1]) {
			t.Errorf("%s has the same key", name)
		}
	}
	if key(workload) != key(strings.ReplaceAll(strings.ReplaceAll(workload, "front-1", "rear-22"), "x/y:2", "other/y:3")) {
		t.Error("other names have another key")
	}
}

// TestAWordInThePlaceOfEachNameIsAnotherKey: a name that the rest of the text has, too, is in the key together with the place that it is in.
func TestAWordInThePlaceOfEachNameIsAnotherKey(t *testing.T) {
	found := map[string]string{}
	for _, line := range []string{"  name: front-1", "  namespace: team-2", "- name: prepare", "- name: main", "app: front-1"} {
		before, _, _ := strings.Cut(line, ": ")
		text := strings.Replace(workload, line+"\n", before+": config\n", 1)
		s := NewScan(rulesFor())
		if text == workload || !s.Read(text, 0) {
			t.Fatalf("%s: the text has no key", line)
		}
		if other, ok := found[string(s.Key)]; ok {
			t.Errorf("%q has the key of %q", line, other)
		}
		found[string(s.Key)] = line
	}
}
