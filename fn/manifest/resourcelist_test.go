// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/result"
)

const listHead = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"

var oneResult = result.Results{{Message: "no config", Severity: result.Warning, File: &result.File{Path: "a.yaml", Line: 7}}}

const oneResultYAML = `results:
- file:
    index: 0
    path: a.yaml
  message: no config
  severity: warning
  tags:
    prerig.dev/line: "7"
`

func list(t *testing.T, src string) *ResourceList {
	t.Helper()
	rl, err := ParseResourceList([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(rl.Bytes(rl.Items, rl.Results)); got != src && len(rl.Results) == 0 {
		t.Errorf("the untouched list differs: %s", cmp.Diff(src, got))
	}
	return rl
}

func label(t *testing.T, d *Document) *Document {
	t.Helper()
	obj, err := d.Object()
	if err != nil {
		t.Fatal(err)
	}
	obj = copyMap(obj)
	obj["labels"] = map[string]any{"a": "b"}
	next, err := d.With(obj)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestResourceListBytes(t *testing.T) {
	t.Parallel()
	items := "items:\n# first\n- kind: A # a\n  x: |\n    - no item\n# second\n- kind: B\n"
	labelled := "items:\n# first\n- kind: A # a\n  x: |\n    - no item\n  labels:\n    a: b\n# second\n- kind: B\n"
	config := "functionConfig:\n  kind: P # policy\n"
	tests := map[string]struct {
		src, want string
		edit      bool
		drop      int // the element to take out, from 1
		add       string
		results   result.Results
	}{
		"edit":                  {listHead + items + config, listHead + labelled + config, true, 0, "", nil},
		"items last":            {listHead + config + items, listHead + config + labelled, true, 0, "", nil},
		"results added":         {listHead + items, listHead + labelled + oneResultYAML, true, 0, "", oneResult},
		"results replaced":      {listHead + "results:\n- message: old\n  severity: info\n" + items, listHead + oneResultYAML + labelled, true, 0, "", oneResult},
		"results removed":       {listHead + items + "results:\n- message: old\n  severity: info\n", listHead + labelled, true, 0, "", nil},
		"results empty":         {listHead + items + "results: []\n", listHead + items + oneResultYAML, false, 0, "", oneResult},
		"no items":              {listHead + config, listHead + config + oneResultYAML, false, 0, "", oneResult},
		"item to empty list":    {listHead + "items: [] # none\n" + config, listHead + "items: # none\n- kind: C\n  metadata:\n    name: c\n" + config, false, 0, "kind: C\nmetadata: {name: c}\n", nil},
		"item to no list":       {listHead + config, listHead + config + "items:\n- kind: C\n", false, 0, "kind: C\n", nil},
		"item to null list":     {listHead + "items:\n" + config, listHead + "items:\n- kind: C\n" + config, false, 0, "kind: C\n", nil},
		"item appended":         {listHead + items + "# about config\n" + config, listHead + items + "- kind: C\n# about config\n" + config, false, 0, "kind: C\n", nil},
		"item taken out":        {listHead + "items:\n- kind: A\n- kind: B\n", listHead + "items:\n- kind: A\n", false, 2, "", nil},
		"last item taken out":   {listHead + "items:\n- kind: A\n" + config, listHead + "items: []\n" + config, false, 1, "", nil},
		"no final line break":   {listHead + "items:\n- kind: A", listHead + "items:\n- kind: A\n  labels:\n    a: b\n" + oneResultYAML, true, 0, "", oneResult},
		"indented":              {listHead + "items:\n  - kind: A\n  -\n    kind: B\n", listHead + "items:\n  - kind: A\n    labels:\n      a: b\n  -\n    kind: B\n  - kind: C\n", true, 0, "kind: C\n", nil},
		"flow item":             {listHead + "items:\n- {kind: A}\n", listHead + "items:\n- {kind: A, labels: {a: b}}\n", true, 0, "", nil},
		"flow list":             {listHead + "items: [{kind: A}, {kind: B}]\n", listHead + "items: [{kind: A, labels: {a: b}}, {kind: B}, {kind: C}]\n" + oneResultYAML, true, 0, "kind: C\n", oneResult},
		"flow item taken out":   {listHead + "items: [{kind: A}, {kind: B}]\n", listHead + "items: [{kind: B}]\n", false, 1, "", nil},
		"document start":        {"---\n" + listHead + items, "---\n" + listHead + labelled, true, 0, "", nil},
		"comments before":       {"# c\n---\n" + listHead + items + "...\n", "# c\n---\n" + listHead + labelled + oneResultYAML + "...\n", true, 0, "", oneResult},
		"crlf":                  {strings.ReplaceAll(listHead+items, "\n", "\r\n"), strings.ReplaceAll(listHead+labelled+oneResultYAML, "\n", "\r\n"), true, 0, "", oneResult},
		"anchor used elsewhere": {listHead + "items:\n- kind: A\n  labels: &l {x: z}\n- kind: B\n  labels: *l\n", listHead + "items:\n- kind: A\n  labels: &l {a: b}\n- kind: B\n  labels:\n    x: z\n", true, 0, "", nil},
		"json":                  {`{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"kind":"A"},{"kind":"B"}]}`, `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"kind":"A","labels":{"a":"b"}},{"kind":"B"},{"kind":"C"}],"results":[{"message":"m","severity":"error"}]}`, true, 0, "kind: C\n", result.Results{{Message: "m"}}},
		"json without items":    {`{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList"}`, `{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [{"kind": "C"}]}`, false, 0, "kind: C\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rl := list(t, tt.src)
			docs := append([]*Document{}, rl.Items...)
			if tt.edit {
				docs[0] = label(t, docs[0])
			}
			if tt.drop > 0 {
				docs = append(docs[:tt.drop-1], docs[tt.drop:]...)
			}
			if tt.add != "" {
				docs = append(docs, one(t, tt.add))
			}
			got := rl.Bytes(docs, tt.results)
			var streamed bytes.Buffer
			if err := rl.Write(&streamed, docs, tt.results); err != nil || streamed.String() != string(got) {
				t.Errorf("Write: error %v, -Bytes +Write:\n%s", err, cmp.Diff(string(got), streamed.String()))
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Fatal(diff)
			}
			again := list(t, string(got))
			if len(again.Items) != len(docs) || len(again.Results) != len(tt.results) {
				t.Errorf("read back %d items, %d results", len(again.Items), len(again.Results))
			}
			if len(tt.results) == 1 && tt.results[0].File != nil && again.Results[0].File.Line != 7 {
				t.Errorf("the line is lost: %+v", again.Results[0])
			}
		})
	}
}

func TestResourceListParts(t *testing.T) {
	t.Parallel()
	rl := list(t, "# top\n"+listHead+"functionConfig: # the policy\n  apiVersion: prerig.dev/v1alpha1\n  kind: InjectionPolicy\nitems:\n- kind: A\n-\n  kind: B\n")
	fc, err := rl.FunctionConfig.Object()
	if err != nil || fc["kind"] != "InjectionPolicy" {
		t.Error(fc, err)
	}
	if m, ok := rl.FunctionConfig.Peek(); !ok || m.Kind != "InjectionPolicy" {
		t.Error(m, ok)
	}
	if l := rl.FunctionConfig.Line(); l != 5 {
		t.Error("functionConfig at line", l)
	}
	if l := rl.Items[1].Line(); l != 10 {
		t.Error("second item at line", l)
	}
	if line, col, ok := rl.Items[1].Locate("kind"); !ok || line != 10 || col != 3 {
		t.Error(line, col, ok)
	}
	if line, col, ok := rl.Items[0].Locate("kind"); !ok || line != 8 || col != 3 {
		t.Error(line, col, ok)
	}
	if line, col, ok := rl.FunctionConfig.Locate("kind"); !ok || line != 6 || col != 3 {
		t.Error(line, col, ok)
	}
}

func TestResourceListErrors(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"":                        "the input is empty",
		"kind: Pod\n":             `found "Pod"`,
		"- a\n":                   `found ""`,
		"a: [\n":                  "line 1",
		listHead + "---\nx: y\n":  "line 4: found a second document",
		listHead + "items: 5\n":   "items is not a list",
		listHead + "kind: List\n": "twice",
		"apiVersion: config.kubernetes.io/v2\nkind: ResourceList\n": `"config.kubernetes.io/v2"; config.kubernetes.io/v1 and config.kubernetes.io/v1beta1 are supported`,
		listHead + "functionConfig: {a: [}\n":                       "line 3",
		listHead + "functionConfig:\n  a: 1\n  a: 2\n":              `line 5: found the key "a" twice`,
		listHead + "results: 5\n":                                   "reading results",
		"a\x00b":                                                    "line 1: found the byte 0x00",
	} {
		_, err := ParseResourceList([]byte(src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", src, err, want)
		}
	}
}
