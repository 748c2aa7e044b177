// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/podmap"
)

// TestRecord checks that a pod comes back from its record to the last field, and that later edits of the injected pod stay.
func TestRecord(t *testing.T) {
	in := appendInjector(t, 8, "", "", "", nil)
	original := decodeObject(t, []byte(strings.Replace(appendPod, `"spec": {`, `"spec": {"unknownField": {"a": [1, {"b": null}]},`, 1)))
	res, err := Istio(in, Request{Pod: original})
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := RecordOriginal(original, res.Pod)
	if err != nil {
		t.Fatal(err)
	}
	again, err := RecordOriginal(original, res.Pod)
	if err != nil || !reflect.DeepEqual(recorded, again) {
		t.Errorf("two records differ: %v", err)
	}
	out, err := Remove(RemoveRequest{Pod: recorded})
	if err != nil || !out.Exact || len(out.Unknown) > 0 {
		t.Fatal(err, out.Exact, out.Unknown)
	}
	if diff := cmp.Diff(original, out.Pod); diff != "" {
		t.Error(diff)
	}
	p, _ := newPod(recorded)
	podmap.Find(p.specListMaps(containersKey), "web")["image"] = "web:2"
	p.setMetadataValue("labels", "team", "shop")
	out, err = Remove(RemoveRequest{Pod: p.toPodObject()})
	if err != nil {
		t.Fatal(err)
	}
	want := podmap.CopyMap(original)
	podmap.Find(mapAt(want, "spec")["containers"].([]any), "web")["image"] = "web:2"
	mapAt(mapAt(want, "metadata"), "labels")["team"] = "shop"
	if diff := cmp.Diff(want, out.Pod); diff != "" {
		t.Errorf("edits after the injection: %s", diff)
	}
	res, err = Istio(in, Request{Pod: recorded, FromOriginal: true})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := newPod(res.Pod); p.annotations()[RecordAnnotation] != "" {
		t.Error("injecting again keeps an old record")
	}
}

// TestRecordOfWhatAPatchCannotSay falls back to the whole original.
func TestRecordOfWhatAPatchCannotSay(t *testing.T) {
	original := decodeObject(t, []byte(`{"metadata": {"labels": null}, "spec": {"containers": [{"name": "a"}, {"name": "a", "image": "twice"}], "volumes": []}}`))
	injected := decodeObject(t, []byte(`{"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "a"}, {"name": "istio-proxy"}]}}`))
	recorded, err := RecordOriginal(original, injected)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Remove(RemoveRequest{Pod: recorded})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(original, out.Pod); diff != "" {
		t.Error(diff)
	}
}
