// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/podmap"
)

func jsonOf(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// app has two containers and two init containers.
const app = `
metadata: {labels: {app: web}, annotations: {containers: web}}
spec:
  initContainers: [{name: one, image: i}, {name: two, image: i}]
  containers: [{name: web, image: i, env: [{name: A, value: a}]}, {name: cache, image: i}]
`

func names(pod map[string]any, key string) string {
	var out []string
	for _, c := range listOf(pod, key) {
		name, _ := c["name"].(string)
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func TestOrder(t *testing.T) {
	const template = `"spec: {initContainers: [{name: x, image: i}, {name: w, image: i, restartPolicy: Always}], containers: [{name: z, image: i}]}\n"`
	for name, tc := range map[string]struct{ order, template, init, containers string }{
		"last":            {"{}", template, "one two x w", "web cache z"},
		"first":           {"{position: First}", template, "x w one two", "z web cache"},
		"before":          {"{position: Before, container: cache}", template, "one two x w", "web z cache"},
		"after":           {"{position: After, container: web}", template, "one two x w", "web z cache"},
		"each its own":    {"{position: First, initPosition: After, initContainer: one}", template, "one x w two", "z web cache"},
		"nobody":          {"{position: Before, container: nobody}", template, "one two x w", "web cache z"},
		"by the template": {"{position: Last}", strings.TrimSuffix(template, `\n"`) + `\norder: {initPosition: First, position: Before, container: cache}\n"`, "x w one two", "web z cache"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := compiled(t, "{order: "+tc.order+", template: "+tc.template+"}").Inject(request(t, app))
			if err != nil {
				t.Fatal(err)
			}
			if names(got.Pod, "initContainers") != tc.init || names(got.Pod, "containers") != tc.containers {
				t.Errorf("got %q and %q", names(got.Pod, "initContainers"), names(got.Pod, "containers"))
			}
			if diff := cmp.Diff([]string{"x", "w", "z"}, got.Added); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSkip: a template that prints skip leaves the pod alone, and says why.
func TestSkip(t *testing.T) {
	s := compiled(t, `{template: "{{ if .Spec.HostNetwork }}skip: host network{{ else }}spec: {containers: [{name: x, image: i}]}{{ end }}"}`)
	got, err := s.Inject(request(t, "{metadata: {}, spec: {hostNetwork: true, containers: [{name: web}]}}"))
	if err != nil || got.Skip != "host network" || got.Pod != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = s.Inject(request(t, app)); err != nil || got.Skip != "" || names(got.Pod, "containers") != "web cache x" {
		t.Errorf("got %+v, %v", got, err)
	}
	for template, want := range map[string]string{
		"skip: true":                     "skip: it has to be the reason",
		"skip: ''":                       "skip: it has to be the reason",
		"{skip: x, spec: {}}":            "skip: it excludes metadata, spec and order",
		"{skip: x, order: {}, spec: {}}": "skip: it excludes",
	} {
		_, err := compiled(t, "{template: "+string(jsonOf(t, template))+"}").Inject(request(t, app))
		wantError(t, err, want)
	}
}

// TestMeasures: what templates read of durations and quantities, and the hash by its published test vectors.
func TestMeasures(t *testing.T) {
	for call, want := range map[string]string{
		`milliseconds "1.5s"`: "1500", `milliseconds "2m"`: "120000", `milliseconds "1999us"`: "1",
		`wholeQuantity "100m"`: "1", `wholeQuantity "1500m"`: "2", `wholeQuantity "2"`: "2",
		`fnv32a ""`: "811c9dc5", `fnv32a "a"`: "e40c292c", `fnv32a "foobar"`: "bf9cf968",
	} {
		got, err := compiled(t, "{template: "+string(jsonOf(t, `metadata: {labels: {a: "{{ `+call+` }}"}}`))+"}").Inject(request(t, app))
		if err != nil {
			t.Fatal(err)
		}
		if meta := got.Pod["metadata"].(map[string]any); meta["labels"].(map[string]any)["a"] != want {
			t.Errorf("%s: got %v, want %s", call, meta["labels"], want)
		}
	}
	for call, want := range map[string]string{`milliseconds "3"`: `"3" is not a duration`, `wholeQuantity "much"`: `"much" is not a quantity`} {
		_, err := compiled(t, "{template: "+string(jsonOf(t, `metadata: {labels: {a: "{{ `+call+` }}"}}`))+"}").Inject(request(t, app))
		wantError(t, err, want)
	}
}

func TestContainers(t *testing.T) {
	for name, tc := range map[string]struct {
		patch string
		want  string // the containers that get the variable
		err   string
	}{
		"all":             {patch: "{}", want: "web cache"},
		"with init":       {patch: "{initContainers: true}", want: "one two web cache"},
		"by name":         {patch: "{names: [web, nobody]}", want: "web"},
		"by wildcard":     {patch: "{names: ['c?che', 'w*']}", want: "web cache"},
		"by parameter":    {patch: "{namesFrom: list}", want: "web"},
		"by no parameter": {patch: "{namesFrom: empty}", want: "web cache"},
		"unknown":         {patch: "{namesFrom: wrong}", err: `metadata.annotations.wrong: the pod has no container "wbe"; it has web, cache`},
	} {
		t.Run(name, func(t *testing.T) {
			patch := object(t, tc.patch)
			patch["template"] = "env: [{name: GATE, value: '{{ .Container.Name }} of {{ .Workload.Name }}'}]"
			s := compiled(t, `{parameters: [{name: list, annotation: containers, type: list}, {name: empty, annotation: nothing, type: list}, {name: wrong, annotation: wrong, type: list}],
				template: "spec: {containers: [{name: added, image: i}]}", containers: [`+string(jsonOf(t, patch))+"]}")
			pod := strings.Replace(app, "annotations: {", "annotations: {wrong: wbe, ", 1)
			if tc.err == "" {
				pod = app
			}
			got, err := s.Inject(request(t, pod))
			if tc.err != "" {
				wantError(t, err, tc.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, key := range []string{"initContainers", "containers"} {
				for _, c := range listOf(got.Pod, key) {
					if name, _ := c["name"].(string); strings.Contains(string(jsonOf(t, c["env"])), name+" of web") {
						have = append(have, name)
					}
				}
			}
			if strings.Join(have, " ") != tc.want {
				t.Errorf("got %q, want %q", have, tc.want)
			}
		})
	}
}

// TestOwnProxy leaves a container alone in which the user changes Istio's proxy.
func TestOwnProxy(t *testing.T) {
	got, err := compiled(t, "{containers: [{template: 'env: [{name: GATE}]'}]}").Inject(request(t, "{metadata: {}, spec: {containers: [{name: istio-proxy, image: auto}, {name: app}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	if list := listOf(got.Pod, "containers"); list[0]["env"] != nil || list[1]["env"] == nil {
		t.Errorf("got %v", list)
	}
}

func TestInjectErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		text, pod string
		field     string
		line      int
		want      []string
	}{
		"same container":            {text: "{template: 'spec: {containers: [{name: cache, image: x}]}'}", field: "spec.containers[1]", want: []string{"already has a container cache"}},
		"same container, elsewhere": {text: "{template: 'spec: {initContainers: [{name: cache, image: x}]}'}", field: "spec.containers[1]"},
		"same volume":               {text: "{template: 'spec: {volumes: [{name: v, emptyDir: {}}]}'}", pod: "{metadata: {}, spec: {containers: [], volumes: [{name: v, secret: {secretName: s}}]}}", field: "spec.volumes[0]"},
		"wrong type":                {text: "{template: 'spec: {containers: [{name: 1, image: x}]}'}", want: []string{"template", "spec.containers[0].name", "has to be a string"}},
		"not YAML":                  {text: "{template: \"spec:\n  a: [\n\"}", want: []string{"what it prints is not YAML"}},
		"twice":                     {text: "template: |\n  spec: {}\n  spec: {}\n", want: []string{"template", "line 2"}},
		"no map":                    {text: "{template: 'text'}", want: []string{"has to print a map"}},
		"another key":               {text: "{template: 'sepc: {}'}", want: []string{"it prints the key sepc"}},
		"fail":                      {text: "template: |\n  a: 1\n  {{ fail \"no way\" }}\n", line: 2, want: []string{"no way"}},
		"missing value":             {text: "{template: '{{ .Values.nope }}'}", line: 1, want: []string{".Values.nope", "nope"}},
		"missing param":             {text: "{parameters: [{name: port}], template: '{{ .Params.prot }}'}", line: 1, want: []string{"prot"}},
		"no such field":             {text: "{template: '{{ .Workload.Nmae }}'}", line: 1, want: []string{"Nmae"}},
		"clock":                     {text: "{template: '{{ now }}'}", line: 1, want: []string{`function "now" is refused`, "the clock"}},
		"environment":               {text: "{template: '{{ env \"HOME\" }}'}", line: 1, want: []string{`function "env" is refused`}},
		"randomness":                {text: "{template: '{{ uuidv4 }}'}", line: 1, want: []string{"randomness"}},
		"network":                   {text: "{template: '{{ getHostByName \"a\" }}'}", line: 1, want: []string{"the network"}},
		"endless include":           {text: "{template: '{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}'}", line: 1, want: []string{"more than 32 times deep"}},
		"endless loop":              {text: "{template: '{{ range 1000000000000 }}{{ end }}'}", line: 1, want: []string{"steps"}},
		"include in two":            {text: "{template: '{{ define `x` }}{{ if lt (len .) 30 }}{{ $_ := include `x` (append . 1) }}{{ $_ = include `x` (append . 1) }}{{ end }}{{ end }}{{ include `x` list }}'}", line: 1, want: []string{"steps"}},
		"endless text":              {text: "{template: '{{ range until 10000 }}{{ repeat 2000 `x` }}{{ end }}'}", want: []string{"prints more than"}},
		"order":                     {text: "{template: 'order: {position: Middle}'}", want: []string{"order", `"Middle" is not one of First`}},
		"order key":                 {text: "{template: 'order: {postion: First}'}", want: []string{"postion is not one of"}},
		"renamed":                   {text: "{containers: [{template: 'name: x'}]}", want: []string{"containers[0].template", "the name cannot change"}},
		"container type":            {text: "{containers: [{template: 'env: x'}]}", want: []string{"containers[0].template", "has to be a list"}},
		"object":                    {text: "{objects: 'kind: ConfigMap'}", want: []string{"objects", "no apiVersion, kind or metadata.name"}},
		"object list":               {text: "{objects: '{apiVersion: v1, kind: List, metadata: {name: x}}'}", want: []string{"print its items"}},
		"required":                  {text: "{template: '{{ required \"say what\" .Values.x }}', values: {x: ''}}", line: 1, want: []string{"say what"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := tc.pod
			if pod == "" {
				pod = app
			}
			_, err := compiled(t, tc.text).Inject(request(t, pod))
			wantError(t, err, append(tc.want, "")...)
			var at *podmap.FieldError
			if tc.field != "" && (!errors.As(err, &at) || at.Field != tc.field) {
				t.Errorf("got %v, want the field %s", err, tc.field)
			}
			var in *gotemplate.Error
			if tc.line > 0 && (!errors.As(err, &in) || in.Line != tc.line) {
				t.Errorf("got %#v, want line %d", err, tc.line)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	s := compiled(t, `{ownAnnotations: [gate/], parameters: [{name: a, annotation: gate/a}, {name: f, prefix: gate/f-}],
		select: {rules: [{annotations: {matchExpressions: [{key: gate/on, operator: Exists}]}, action: Inject}]},
		template: "spec: {containers: [{name: x, image: i, volumeMount: []}]}"}`)
	got, err := s.Inject(request(t, "{metadata: {annotations: {gate/a: '1', gate/on: '', gate/f-x: '', gate/typo: '', other/typo: ''}}, spec: {containers: []}}"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Warnings) != 2 || !strings.Contains(got.Warnings[0].Message, "spec.containers[0].volumeMount") || got.Warnings[1].Field != `metadata.annotations["gate/typo"]` {
		t.Errorf("got %q", got.Warnings)
	}
}

func TestObjects(t *testing.T) {
	s := compiled(t, `{objects: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: b}\n---\napiVersion: x/v1\nkind: Thing\nmetadata: {name: c, namespace: ''}\n"}`)
	got, err := s.Inject(request(t, app))
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop"}},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "b"}},
		{"apiVersion": "x/v1", "kind": "Thing", "metadata": map[string]any{"name": "c"}},
	}
	if diff := cmp.Diff(want, got.Objects); diff != "" {
		t.Error(diff)
	}
}

// TestUnchanged sees that neither the request nor the sidecar's values are changed, also by functions that change maps.
func TestUnchanged(t *testing.T) {
	s := compiled(t, `{values: {m: {a: 1}}, parameters: [{name: p, prefix: x-, default: {k: v}}],
		template: "metadata: {labels: {v: '{{ set .Values.m \"a\" 2 | len }}{{ set .Params.p \"k\" 1 | len }}'}}", guard: {labels: {app: guarded}}, containers: [{template: 'env: [{name: A, value: changed}]'}]}`)
	req := request(t, app)
	for range 2 {
		if _, err := s.Inject(req); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(object(t, app), req.Pod); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"m": map[string]any{"a": int64(1)}}, s.spec.Values); diff != "" {
		t.Error(diff)
	}
}
