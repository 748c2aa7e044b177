// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAudit names the webhook whose patch touches a field.
func TestAudit(t *testing.T) {
	var a Audit
	err := a.Read(strings.NewReader(`
{"stage":"ResponseComplete","verb":"create","objectRef":{"resource":"pods","namespace":"shop","name":"web"},"annotations":{"mutation.webhook.admission.k8s.io/round_0_index_0":"{\"configuration\":\"one\",\"webhook\":\"a\",\"mutated\":true}","patch.webhook.admission.k8s.io/round_0_index_0":"{\"patch\":[{\"op\":\"add\",\"path\":\"/metadata/labels/x.io~1y\",\"value\":\"z\"}]}","mutation.webhook.admission.k8s.io/round_0_index_1":"{\"configuration\":\"two\",\"webhook\":\"b\",\"mutated\":true}"}}
{"stage":"ResponseComplete","verb":"list","objectRef":{"resource":"pods"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	pod := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}`)
	label := change{path: []step{{key: "metadata"}, {key: "labels"}, {key: "x.io/y"}}}
	if by, ok := a.webhooksThatChanged(pod, label); !ok || !cmp.Equal(by, []string{"one/a"}) {
		t.Errorf("the label is by %v, %t", by, ok)
	}
	if by, ok := a.webhooksThatChanged(pod, change{path: []step{{key: "spec"}, {key: "hostPID"}}}); ok {
		t.Errorf("a field that no patch has is by %v", by)
	}
	if err := a.Read(strings.NewReader("{\n")); err == nil {
		t.Error("what is no audit log was read")
	}
}

// readAudit reads a creation of the pod shop/web by webhooks with these patches; "" is one that the log does not have.
func readAudit(t *testing.T, a *Audit, uid string, patches ...string) {
	t.Helper()
	notes := map[string]string{}
	for i, patch := range patches {
		notes[fmt.Sprintf("%sround_0_index_%d", mutationAnnotation, i)] = fmt.Sprintf(`{"configuration":"c","webhook":"w%d","mutated":true}`, i)
		if patch != "" {
			notes[fmt.Sprintf("%sround_0_index_%d", patchAnnotation, i)] = `{"patch":[` + patch + `]}`
		}
	}
	line, err := json.Marshal(map[string]any{
		"stage": "ResponseComplete", "verb": "create", "objectRef": map[string]any{"resource": "pods", "namespace": "shop", "name": "web"},
		"responseObject": map[string]any{"metadata": map[string]any{"name": "web", "uid": uid}}, "annotations": notes,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Read(strings.NewReader(string(line) + "\n")); err != nil {
		t.Fatal(err)
	}
}

// TestAuditBlames takes nobody for certain whose patch is about something else.
func TestAuditBlames(t *testing.T) {
	pod := parse(t, `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, uid: u2, labels: {team: red}}
spec:
  containers: [{name: app, image: "x:1"}, {name: helper, image: "y:1"}, {name: miner, image: "z:1"}]
`)
	image := func(of string) change {
		return change{path: []step{{key: "spec"}, {key: "containers"}, {key: of, element: true}, {key: "image"}}, want: "a", found: "b"}
	}
	miner := change{path: []step{{key: "spec"}, {key: "containers"}, {key: "miner", element: true}}, found: map[string]any{"name": "miner"}}
	gone := change{path: []step{{key: "spec"}, {key: "containers"}, {key: "gone", element: true}}, want: map[string]any{"name": "gone"}}
	label := change{path: []step{{key: "metadata"}, {key: "labels"}, {key: "team"}}, found: "red"}
	order := change{path: []step{{key: "spec"}, {key: "containers"}}, order: true, want: "a, b", found: "b, a"}
	for name, c := range map[string]struct {
		c       change
		patches []string
		by      []string
	}{
		"the only one, without a patch":      {image("app"), []string{""}, []string{"c/w0"}},
		"the only one, of something else":    {image("app"), []string{`{"op":"add","path":"/spec/hostPID","value":true}`}, nil},
		"the element of the index":           {image("helper"), []string{`{"op":"replace","path":"/spec/containers/1/image","value":"b"}`}, []string{"c/w0"}},
		"another element":                    {image("app"), []string{`{"op":"replace","path":"/spec/containers/1/image","value":"b"}`}, nil},
		"one of two":                         {image("app"), []string{`{"op":"replace","path":"/spec/containers/1/image"}`, `{"op":"replace","path":"/spec/containers/0/image"}`}, []string{"c/w1"}},
		"an element that is added":           {miner, []string{`{"op":"add","path":"/spec/containers/-","value":{"name":"miner"}}`}, []string{"c/w0"}},
		"another element that is added":      {miner, []string{`{"op":"add","path":"/spec/containers/-","value":{"name":"log"}}`}, nil},
		"an element that is gone":            {gone, []string{`{"op":"remove","path":"/spec/containers/1"}`}, []string{"c/w0"}},
		"all labels":                         {label, []string{`{"op":"add","path":"/metadata/labels","value":{"team":"red"}}`}, []string{"c/w0"}},
		"all labels but this":                {label, []string{`{"op":"add","path":"/metadata/labels","value":{"tier":"db"}}`}, nil},
		"the order":                          {order, []string{`{"op":"move","from":"/spec/containers/1","path":"/spec/containers/0"}`}, []string{"c/w0"}},
		"the order, and a patch of an image": {order, []string{`{"op":"replace","path":"/spec/containers/1/image","value":"b"}`}, nil},
	} {
		var a Audit
		readAudit(t, &a, "u2", c.patches...)
		by, ok := a.webhooksThatChanged(pod, c.c)
		if diff := cmp.Diff(c.by, by); diff != "" || ok != (len(c.by) > 0) {
			t.Errorf("%s: %t %s", name, ok, diff)
		}
	}
	var a Audit
	readAudit(t, &a, "u2", "")
	readAudit(t, &a, "u3", "", "")
	if by, ok := a.webhooksThatChanged(pod, label); !ok || len(by) != 1 {
		t.Errorf("of an earlier pod of the name: %v, %t", by, ok)
	}
	var other Audit
	readAudit(t, &other, "u1", "")
	if by, ok := other.webhooksThatChanged(pod, label); ok {
		t.Errorf("of another pod of the name: %v", by)
	}
}

// TestAuditUnnamed counts the creations whose pods the log does not name, and takes no failure for a creation.
func TestAuditUnnamed(t *testing.T) {
	event := func(name, response string) string {
		return `{"stage":"ResponseComplete","verb":"create","objectRef":{"resource":"pods","namespace":"shop"` + name + `}` + response + `}` + "\n"
	}
	a := &Audit{}
	err := a.Read(strings.NewReader(event("", "") + event("", `,"responseStatus":{"code":201}`) + event("", `,"responseStatus":{"code":403}`) +
		event("", `,"responseObject":{"metadata":{"name":"web"}}`) + event(`,"name":"db"`, "") + event(`,"name":"late"`, `,"responseStatus":{"code":409}`)))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.pods) != 2 || a.pods["shop/late"] != nil {
		t.Errorf("it has %v", a.pods)
	}
	r, err := Verify(t.Context(), &Snapshot{}, commits{{}}, Options{Audit: a})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text, false); err != nil || r.AuditUnnamed != 2 || !strings.Contains(text.String(), "2 creations of a pod without its name") {
		t.Errorf("%d unnamed: %v\n%s", r.AuditUnnamed, err, text.String())
	}
}
