// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const writingPolicy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh}
spec:
  istio: {injector: {builtIn: istio}}
  admission:
    steps: {MutatingAdmissionPolicy: Write}
    policies: |
      apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingAdmissionPolicy
      metadata: {name: team}
      spec:
        matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
        reinvocationPolicy: Never
        mutations:
        - patchType: JSONPatch
          jsonPatch:
            expression: |
              [JSONPatch{op: "add", path: "/spec/hostAliases/-", value: Object.spec.hostAliases{ip: "10.0.0.1", hostnames: ["db"]}}]
      ---
      apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingAdmissionPolicyBinding
      metadata: {name: team}
      spec: {policyName: team}
`

// TestInjectWritesPolicies: inject writes what a policy of the cluster changes, gate reports that the cluster changes it again, and
// uninject restores the file.
func TestInjectWritesPolicies(t *testing.T) {
	dir := t.TempDir()
	policy, file := filepath.Join(dir, "mesh.yaml"), filepath.Join(dir, "web.yaml")
	text := strings.Replace(application("web", "web:1"), "containers: [", "hostAliases: [{ip: 10.0.0.2, hostnames: [cache]}], containers: [", 1)
	for name, content := range map[string]string{policy: writingPolicy, file: text} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		out, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	runCode(t, 0, "inject", "-i", "-p", policy, file)
	written := read()
	for _, want := range []string{"istio-proxy", "ip: 10.0.0.1", "sidecar.prerig.dev/MutatingAdmissionPolicy"} {
		if !strings.Contains(written, want) {
			t.Errorf("%q is not written:\n%s", want, written)
		}
	}
	runCode(t, 0, "inject", "-i", "-p", policy, file)
	if read() != written {
		t.Errorf("the second injection changes the file:\n%s", read())
	}
	out, _ := runCode(t, 1, "gate", "-p", policy, file)
	if !strings.Contains(out, "admission-written-again") || !strings.Contains(out, "MutatingAdmissionPolicy team are written") {
		t.Errorf("the gate does not report the second change:\n%s", out)
	}
	runCode(t, 0, "inject", "--remove", "-i", "-p", policy, file)
	if read() != text {
		t.Errorf("removing does not restore the file:\n%s", read())
	}
}
