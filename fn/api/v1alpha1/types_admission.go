// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PodAdmission is what becomes of the steps that an API server takes with each new pod.
type PodAdmission struct {
	// Steps maps the name of a step to Write, which writes its changes into the workloads; Predict, which shows them in prerig admit;
	// or Ignore, which leaves the step out of prerig admit and prerig gate. The steps are LimitRanger, ServiceAccount,
	// PodNodeSelector, Priority, DefaultTolerationSeconds, RuntimeClass, MutatingAdmissionPolicy, webhook, PodSecurity,
	// ValidatingAdmissionPolicy and ResourceQuota. The default of webhook, which is the injection of this policy, is Write, and that
	// of all others is Predict. Only webhook and MutatingAdmissionPolicy can be written.
	// +enum=Write,Predict,Ignore
	Steps map[string]string `json:"steps,omitempty"`
	// Policies are the MutatingAdmissionPolicies to write, with their bindings, their parameters and other objects that they read, as
	// YAML documents: those of the files that prerig capture writes. Only prerig inject, prerig render and the daemon write them.
	Policies string `json:"policies,omitempty"`
}

// What becomes of a step.
const (
	StepWrite   = "Write"
	StepPredict = "Predict"
	StepIgnore  = "Ignore"
)

// The steps that can be written.
const (
	StepMutatingPolicies = "MutatingAdmissionPolicy"
	StepWebhook          = "webhook"
)

// AdmissionSteps are the names of the steps, in the order of the API server.
var AdmissionSteps = []string{
	"LimitRanger", "ServiceAccount", "PodNodeSelector", "Priority", "DefaultTolerationSeconds", "RuntimeClass", StepMutatingPolicies,
	StepWebhook, "PodSecurity", "ValidatingAdmissionPolicy", "ResourceQuota",
}

// WritesPolicies reports whether MutatingAdmissionPolicies are written.
func (a *PodAdmission) WritesPolicies() bool {
	return a != nil && a.Steps[StepMutatingPolicies] == StepWrite
}

// WritesInjection reports whether the injection of the policy is written.
func (a *PodAdmission) WritesInjection() bool {
	return a == nil || a.Steps[StepWebhook] == "" || a.Steps[StepWebhook] == StepWrite
}

// Ignored returns the names of the steps that are left out, in their order.
func (a *PodAdmission) Ignored() (out []string) {
	for _, step := range AdmissionSteps {
		if a != nil && a.Steps[step] == StepIgnore {
			out = append(out, step)
		}
	}
	return out
}
