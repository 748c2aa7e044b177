// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
)

// TestAdmissionGateIsChecked refuses what the gate could not be run by, and names the field.
func TestAdmissionGateIsChecked(t *testing.T) {
	t.Parallel()
	for want, gates := range map[string]Gates{
		"spec.gates.admission.policies[0]":         {Admission: &AdmissionGate{Policies: []string{"../outside"}}},
		"spec.gates.admission.rules.policy-denied": {Admission: &AdmissionGate{Rules: map[string]string{"policy-denied": "Loud"}}},
		"spec.gates.admission.user.name":           {Admission: &AdmissionGate{User: &AdmissionUser{Groups: []string{"a"}}}},
		"spec.gates.admission.kubernetesVersion": {
			Admission: &AdmissionGate{KubernetesVersion: "1.35"}, Schemas: &SchemaGate{KubernetesVersion: "1.34"},
		},
	} {
		gates.Severity = GateError
		v := &validator{}
		v.checkGates(gates)
		if len(v.errs) != 1 || !strings.Contains(v.errs[0].Error(), want) {
			t.Errorf("got %v, want one error about %s", v.errs, want)
		}
	}
}
