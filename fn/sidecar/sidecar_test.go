// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// object reads YAML as a map.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.(map[string]any)
	return m
}

// spec reads a sidecar as a policy has it. A name, a selection and a template that are not given are filled in.
func spec(t testing.TB, text string) v1alpha1.Sidecar {
	t.Helper()
	s := object(t, text)
	for key, value := range map[string]any{"name": "gate", "select": map[string]any{"default": "Inject"}, "template": "{}"} {
		if _, ok := s[key]; !ok && s["builtIn"] == nil {
			s[key] = value
		}
	}
	p, err := v1alpha1.FromObject(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "test"},
		"spec": map[string]any{"sidecars": []any{s}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.Spec.Sidecars[0]
}

func compiled(t testing.TB, text string) *Sidecar {
	t.Helper()
	s, err := New(spec(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// request is a pod, the same before any sidecar and now.
func request(t testing.TB, pod string) Request {
	t.Helper()
	p := object(t, pod)
	return Request{Pod: p, Original: p, Workload: Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Namespace: "shop"}, Namespace: Namespace{Name: "shop", Known: true}}
}

func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want one with %q", err, word)
		}
	}
}

func TestDecide(t *testing.T) {
	const pod = `{metadata: {labels: {app: web}, annotations: {gate: "on", note: "any text, with spaces"}}, spec: {containers: []}}`
	for name, tc := range map[string]struct {
		sel     string
		ns      Namespace
		unknown v1alpha1.UnknownNamespace
		inject  bool
		fail    bool
		reason  string
	}{
		"default skip":      {sel: "{rules: [{labels: {matchLabels: {app: other}}, action: Inject}]}", reason: "no rule matches, and the default is to skip"},
		"default inject":    {sel: "{default: Inject}", inject: true, reason: "the default is to inject"},
		"kind":              {sel: "{kinds: [Job], default: Inject}", reason: "the kind Deployment is not selected (Job)"},
		"name":              {sel: "{names: ['w?b', other], default: Inject}", inject: true, reason: "no rule"},
		"name not":          {sel: "{names: ['we', 'b*'], default: Inject}", reason: `the name "web" is not selected`},
		"namespace":         {sel: "{namespaces: ['sh*'], default: Inject}", inject: true, reason: "no rule"},
		"namespace not":     {sel: "{namespaces: [kube-*], default: Inject}", reason: `the namespace "shop" is not selected`},
		"label":             {sel: "{rules: [{labels: {matchLabels: {app: web}}, action: Inject}]}", inject: true, reason: `the pod's label app is "web"`},
		"annotation":        {sel: "{rules: [{annotations: {matchLabels: {note: 'any text, with spaces'}}, action: Inject}]}", inject: true, reason: "note is"},
		"not in":            {sel: "{rules: [{annotations: {matchExpressions: [{key: gate, operator: NotIn, values: ['off']}]}, action: Inject}]}", inject: true, reason: "gate"},
		"does not exist":    {sel: "{rules: [{annotations: {matchExpressions: [{key: absent, operator: DoesNotExist}]}, action: Inject}]}", inject: true, reason: "absent is not set"},
		"first rule wins":   {sel: "{rules: [{labels: {matchLabels: {app: web}}, action: Skip}, {annotations: {matchLabels: {gate: 'on'}}, action: Inject}]}", reason: `app is "web"`},
		"fail, with reason": {sel: "{rules: [{labels: {matchLabels: {app: web}}, action: Fail, reason: not this one}]}", fail: true, reason: "not this one"},
		"both must match":   {sel: "{rules: [{labels: {matchLabels: {app: web}}, annotations: {matchLabels: {gate: 'off'}}, action: Inject}]}", reason: "no rule"},
		"rule of a kind":    {sel: "{rules: [{kinds: [Deployment], action: Skip}], default: Inject}", reason: "kind, name or namespace"},
		"namespace label": {sel: "{rules: [{'on': Namespace, labels: {matchLabels: {gate: 'on'}}, action: Inject}]}",
			ns: Namespace{Name: "shop", Labels: map[string]string{"gate": "on"}, Known: true}, inject: true, reason: `the namespace's label gate is "on"`},
		"unknown namespace": {sel: "{rules: [{'on': Namespace, labels: {matchLabels: {gate: 'on'}}, action: Inject}]}",
			ns: Namespace{Name: "shop"}, reason: "were not looked at"},
		"unknown namespace, fail": {sel: "{rules: [{'on': Namespace, labels: {matchLabels: {gate: 'on'}}, action: Inject}]}",
			ns: Namespace{Name: "shop"}, unknown: "Fail", fail: true, reason: "give them in spec.namespaces"},
		"unknown namespace, inject": {sel: "{rules: [{'on': Namespace, labels: {matchLabels: {gate: 'on'}}, action: Inject}]}",
			ns: Namespace{Name: "shop"}, unknown: "Inject", inject: true, reason: "unknownNamespace is Inject"},
		"unknown namespace does not matter": {sel: "{rules: [{'on': Namespace, labels: {matchLabels: {gate: 'on'}}, action: Skip}]}",
			ns: Namespace{}, unknown: "Fail", reason: "no rule matches"},
		"pod before unknown namespace": {sel: "{rules: [{annotations: {matchLabels: {gate: 'on'}}, action: Inject}, {'on': Namespace, labels: {matchLabels: {gate: 'on'}}, action: Skip}]}",
			ns: Namespace{}, unknown: "Fail", inject: true, reason: "gate"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(spec(t, "{select: "+strings.Replace(tc.sel, "{rules: [{'on': Namespace, labels: {matchLabels: {gate: 'on'}}, action: Skip}]}",
				"{rules: [{'on': Namespace, labels: {matchLabels: {gate: 'on'}}, action: Skip}, {labels: {matchLabels: {app: x}}, action: Inject}]}", 1)+"}"))
			if err != nil {
				// What selects nothing is refused by the policy; that is shown there.
				t.Fatal(err)
			}
			req := request(t, pod)
			if tc.ns.Name != "" || strings.Contains(name, "unknown") {
				req.Namespace = tc.ns
			}
			req.Unknown = tc.unknown
			got, err := s.Decide(req)
			if err != nil || got.Inject != tc.inject || got.Fail != tc.fail || !strings.Contains(got.Reason, tc.reason) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestParams(t *testing.T) {
	for name, tc := range map[string]struct {
		param       string
		annotations map[string]string
		namespace   map[string]string
		want        any
		err         string
	}{
		"string":            {param: "{annotation: a}", annotations: map[string]string{"a": " x "}, want: " x "},
		"not set":           {param: "{annotation: a}", want: ""},
		"default":           {param: "{annotation: a, default: x}", want: "x"},
		"empty is set":      {param: "{annotation: a, default: x}", annotations: map[string]string{"a": ""}, want: ""},
		"int":               {param: "{annotation: a, type: int}", annotations: map[string]string{"a": " 7 "}, want: int64(7)},
		"int not set":       {param: "{annotation: a, type: int}", want: nil},
		"int default":       {param: "{annotation: a, type: int, default: 5}", want: int64(5)},
		"int as text":       {param: "{annotation: a, type: int, default: '5'}", want: int64(5)},
		"int wrong":         {param: "{annotation: a, type: int}", annotations: map[string]string{"a": "1.5"}, err: `metadata.annotations.a: "1.5" is not a whole number`},
		"int small":         {param: "{annotation: a, type: int, minimum: '1'}", annotations: map[string]string{"a": "0"}, err: "0 is less than the minimum of 1"},
		"int large":         {param: "{annotation: a, type: int, maximum: '9'}", annotations: map[string]string{"a": "10"}, err: "10 is more than the maximum of 9"},
		"number":            {param: "{annotation: a, type: number}", annotations: map[string]string{"a": "0.25"}, want: 0.25},
		"number NaN":        {param: "{annotation: a, type: number}", annotations: map[string]string{"a": "NaN"}, err: "is not a number"},
		"bool":              {param: "{annotation: a, type: bool}", annotations: map[string]string{"a": "True"}, want: true},
		"bool wrong":        {param: "{annotation: a, type: bool}", annotations: map[string]string{"a": "yes"}, err: "write true or false"},
		"duration":          {param: "{annotation: a, type: duration, maximum: 1m}", annotations: map[string]string{"a": "59s"}, want: "59s"},
		"duration long":     {param: "{annotation: a, type: duration, maximum: 1m}", annotations: map[string]string{"a": "61s"}, err: "more than the maximum of 1m"},
		"duration wrong":    {param: "{annotation: a, type: duration}", annotations: map[string]string{"a": "5"}, err: "is not a duration such as 30s"},
		"quantity":          {param: "{annotation: a, type: quantity, minimum: 1Mi}", annotations: map[string]string{"a": "2048Ki"}, want: "2048Ki"},
		"quantity small":    {param: "{annotation: a, type: quantity, minimum: 1Mi}", annotations: map[string]string{"a": "1k"}, err: "less than the minimum of 1Mi"},
		"quantity number":   {param: "{annotation: a, type: quantity, default: 2}", want: "2"},
		"list":              {param: "{annotation: a, type: list}", annotations: map[string]string{"a": "x, y,,z "}, want: []any{"x", "y", "z"}},
		"list default":      {param: "{annotation: a, type: list, default: [x]}", want: []any{"x"}},
		"list enum":         {param: "{annotation: a, type: list, enum: [x]}", annotations: map[string]string{"a": "x,y"}, err: `"y" is not one of x`},
		"json":              {param: "{annotation: a, type: json}", annotations: map[string]string{"a": `{"n": 1, "l": [true]}`}, want: map[string]any{"n": int64(1), "l": []any{true}}},
		"json wrong":        {param: "{annotation: a, type: json}", annotations: map[string]string{"a": "{"}, err: "is not JSON or YAML"},
		"enum":              {param: "{annotation: a, enum: [x, u]}", annotations: map[string]string{"a": "z"}, err: `"z" is not one of x, u`},
		"pattern is whole":  {param: "{annotation: a, pattern: '[a-z]+'}", annotations: map[string]string{"a": "ab1"}, err: "does not match [a-z]+"},
		"pattern":           {param: "{annotation: a, pattern: 'a|b'}", annotations: map[string]string{"a": "b"}, want: "b"},
		"namespace":         {param: "{annotation: a, default: x}", namespace: map[string]string{"a": "n"}, want: "n"},
		"pod over":          {param: "{annotation: a}", annotations: map[string]string{"a": "p"}, namespace: map[string]string{"a": "n"}, want: "p"},
		"pod only":          {param: "{annotation: a, podOnly: true}", namespace: map[string]string{"a": "n"}, want: ""},
		"namespace wrong":   {param: "{annotation: a, type: int}", namespace: map[string]string{"a": "n"}, err: "reading the annotation a of the namespace shop"},
		"alias":             {param: "{annotation: a, aliases: [b, c]}", annotations: map[string]string{"c": "3", "b": "2"}, want: "2"},
		"required":          {param: "{annotation: a, required: true}", err: "metadata.annotations.a: it is not set"},
		"required, default": {param: "{annotation: a, required: true, default: x}", want: "x"},
		"family": {param: "{prefix: p-, default: {z: d, u: d}}", annotations: map[string]string{"p-x": "1", "p-": "no", "q-x": "no", "p-u": "2"}, namespace: map[string]string{"p-x": "0", "p-w": "0"},
			want: map[string]any{"w": "0", "x": "1", "u": "2", "z": "d"}},
		"family of ints":    {param: "{prefix: p-, type: int, maximum: '3'}", annotations: map[string]string{"p-x": "4"}, err: "metadata.annotations.p-x: 4 is more"},
		"family required":   {param: "{prefix: p-, required: true}", err: "none that begins with p-"},
		"no annotation":     {param: "{default: 3, type: int}", want: int64(3)},
		"required by value": {param: "{required: true}", err: "give it a default in the policy"},
	} {
		t.Run(name, func(t *testing.T) {
			p := object(t, tc.param)
			p["name"] = "v"
			s := compiled(t, "{parameters: ["+string(jsonOf(t, p))+"]}")
			req := request(t, "{metadata: {}, spec: {containers: []}}")
			annotations := map[string]any{}
			for k, v := range tc.annotations {
				annotations[k] = v
			}
			req.Original = map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{}}
			req.Namespace.Annotations = tc.namespace
			got, err := s.readParameters(req)
			if tc.err != "" {
				wantError(t, err, tc.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"v": tc.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewErrors(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"default of another type":  {"{parameters: [{name: a, type: int, default: x}]}", `parameters[0] (a): default: "x" is not a whole number`},
		"default outside":          {"{parameters: [{name: a, type: int, default: 1, minimum: '2'}]}", "less than the minimum"},
		"minimum of another type":  {"{parameters: [{name: a, type: int, minimum: 1s}]}", "parameters[0] (a): minimum:"},
		"default of a family":      {"{parameters: [{name: a, prefix: p-, default: x}]}", "has to be a map"},
		"template":                 {"template: |\n  a: 1\n  b: {{ if }}\n", "reading template, line 2: missing value for if"},
		"unknown function":         {"{template: '{{ nope }}'}", `reading template, line 1: function "nope" not defined`},
		"container template":       {"{containers: [{template: '{{ end }}'}]}", "reading containers[0].template, line 1"},
		"objects":                  {"{objects: '{{'}", "reading objects, line 1"},
		"no such built-in":         {"{builtIn: consul}", `"consul": there are cloud-sql-operator, cloud-sql-proxy`},
		"built-in without sidecar": {"{builtIn: istio}", "it has no sidecar of its own"},
		"value of a built-in":      {"{builtIn: fluent-bit, values: {imgae: x}}", "values.imgae: the built-in sidecar has no such value; it has env, filters, flush"},
		"value in a map":           {"{builtIn: opentelemetry-collector, values: {resources: 1}}", "values.resources: it has to be a map"},
		"parameter of a built-in":  {"{builtIn: fluent-bit, parameters: [{name: nope, default: x}]}", `no parameter "nope"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(spec(t, tc.text))
			wantError(t, err, tc.want)
		})
	}
}

func TestBuiltIn(t *testing.T) {
	s, err := withBuiltIn(spec(t, `{builtIn: cloud-sql-proxy, name: db, values: {image: "mirror/proxy:1"}, parameters: [{name: healthPort, default: 9900}],
  select: {names: [web]}, order: {istio: Outside}, guard: {labels: {a: b}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "db" || s.Values["image"] != "mirror/proxy:1" || s.Values["credentialsKey"] != "key.json" || s.Order.Position != "First" || s.Order.Istio != "Outside" ||
		len(s.Select.Names) != 1 || len(s.Select.Rules) != 3 || s.Guard.Labels["a"] != "b" {
		t.Errorf("got %+v", s)
	}
	for _, p := range s.Parameters {
		if p.Name == "healthPort" && (p.Default != int64(9900) || p.Minimum != "1024" || p.Type != "int") {
			t.Errorf("got %+v", p)
		}
	}
}
