// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestLastApplied is no difference of a Pod that kubectl apply made, and its text is never shown.
func TestLastApplied(t *testing.T) {
	const applied = `"kubectl.kubernetes.io/last-applied-configuration": "{\"DB\":\"hunter2\"}"`
	pod := verifyOne(t, `{spec: {containers: [{name: a}]}}`, `{metadata: {annotations: {`+applied+`}}, spec: {containers: [{name: a}]}}`, &Snapshot{}, Options{})
	if pod.State != Current {
		t.Errorf("it is %s: %v", pod.State, pod.Differences)
	}
	for _, c := range differences(parse(t, `{metadata: {}}`), parse(t, `{metadata: {annotations: {`+applied+`}}}`)) {
		if shown := c.shown(); shown.found != hidden {
			t.Errorf("%s is shown as %v", c.field(), shown.found)
		}
	}
}

// TestCredentialsAreHidden hides texts by the names of their keys, and not what refers to Secrets.
func TestCredentialsAreHidden(t *testing.T) {
	const found = `
metadata:
  annotations: {vault.example.com/token: hunter1, plain: kept1}
spec:
  containers:
  - {name: a, env: [{name: DB_PASSWORD, value: hunter2}, {name: REF, valueFrom: {secretKeyRef: {name: kept2, key: kept3}}}]}
  volumes:
  - {name: v, csi: {driver: kept4, volumeAttributes: {apiKey: hunter3, tokenTTL: hunter4}}}
  - {name: token, secret: {secretName: kept5}}
  nodeSelector: {secret: hunter5}
`
	var shown []string
	for _, c := range differences(parse(t, `{metadata: {annotations: {a: b}}, spec: {containers: [{name: a}]}}`), parse(t, found)) {
		c = c.shown()
		text, err := json.Marshal(c.found)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(text))
	}
	all := strings.Join(shown, "\n")
	if strings.Contains(all, "hunter") || strings.Count(all, "kept") != 5 {
		t.Errorf("it shows\n%s", all)
	}
}
