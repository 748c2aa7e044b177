// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio"
)

func TestRulesOfContainers(t *testing.T) {
	read := func(text string) map[string]any {
		var out map[string]any
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const ours = `{"apiVersion": "v1", "kind": "Pod", "spec": {
		"initContainers": [{"name": "istio-validation"}, {"name": "own"}],
		"containers": [{"name": "own", "env": [{"name": "ISTIO_PROMETHEUS_ANNOTATIONS"}]},
			{"name": "istio-proxy", "env": [{"name": "A"}, {"name": "ISTIO_PROMETHEUS_ANNOTATIONS"}],
			 "volumeMounts": [{"name": "t", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]}]}}`
	const theirs = `{"apiVersion": "v1", "kind": "Pod", "spec": {
		"initContainers": [{"name": "own"}, {"name": "istio-validation"}],
		"containers": [{"name": "own", "env": [{"name": "ISTIO_PROMETHEUS_ANNOTATIONS"}]}, {"name": "istio-proxy", "env": [{"name": "A"}]}]}}`
	got, reasons, err := (&Case{version: istio.Version{Minor: 7, Patch: 8}}).withoutWebhookOnly(read(ours), read(theirs))
	if err != nil {
		t.Fatal(err)
	}
	if len(reasons) != 3 {
		t.Errorf("reasons %q", reasons)
	}
	want := read(theirs)
	if diff, err := compareObject(got, want); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, reasons, _ = (&Case{version: istio.Version{Minor: 8, Patch: 6}}).withoutWebhookOnly(read(ours), read(theirs)); len(reasons) != 0 || cmp.Diff(got, read(ours)) != "" {
		t.Errorf("rules of older versions hold for 1.8: %q", reasons)
	}
	if _, reasons, _ = (&Case{version: istio.Version{Minor: 7, Patch: 8}}).withoutWebhookOnly(read(theirs), read(ours)); len(reasons) != 0 {
		t.Errorf("the rules work the other way round: %q", reasons)
	}
}
