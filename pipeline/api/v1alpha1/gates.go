// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Gates prevent a result from being published; a rejected result leaves the published one in place, and its reason is
// in the status.
type Gates struct {
	// AllowEmpty lets a result without any object be published.
	AllowEmpty bool `json:"allowEmpty,omitempty"`
	// MaxDeleted is the largest share of the published objects that a run may delete, in percent. The default is 50;
	// 100 allows everything. Fewer than four deleted objects always pass.
	MaxDeleted *int `json:"maxDeleted,omitempty"`
	// Severity is the lowest severity of a finding that stops a result: Error (the default), Warning or Never.
	// +enum=Error,Warning,Never
	Severity GateSeverity `json:"severity,omitempty"`
	// AllowDeletedCRDs names the CustomResourceDefinitions that a run may delete, such as shops.example.org. Without, a result that
	// would delete one is refused: a cluster deletes every object of its kind with it.
	AllowDeletedCRDs []string `json:"allowDeletedCRDs,omitempty"`
	// Schemas holds the objects of the result against the schemas of Kubernetes and of CustomResourceDefinitions, as prerig gate
	// does. Without it only pods are looked at.
	Schemas *SchemaGate `json:"schemas,omitempty"`
	// Admission holds the objects of the result against ValidatingAdmissionPolicies and the levels of Pod Security, as prerig gate
	// does.
	Admission *AdmissionGate `json:"admission,omitempty"`
}

// AdmissionGate describes what the cluster would validate.
type AdmissionGate struct {
	// KubernetesVersion is the version of the cluster, such as 1.34. The default is that of schemas, or the newest that is known.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Policies lists files and directories in the source with what the cluster has already: ValidatingAdmissionPolicies, their
	// bindings and parameters, and Namespaces. What is in the result counts anyway.
	Policies []string `json:"policies,omitempty"`
	// PodSecurity is the level that namespaces without a label enforce: privileged (the default), baseline or restricted, with a
	// version where it is not the latest, such as restricted:v1.34.
	PodSecurity string `json:"podSecurity,omitempty"`
	// User is who applies the objects, for policies that read request.userInfo. Without it such policies are not evaluated.
	User *AdmissionUser `json:"user,omitempty"`
	// Rules sets the severity of rules by their codes: Error, Warning, Info or Off.
	Rules map[string]string `json:"rules,omitempty"`
}

// AdmissionUser is a user of the cluster.
type AdmissionUser struct {
	// Name is the user's name, such as system:serviceaccount:flux-system:kustomize-controller.
	// +required
	Name string `json:"name"`
	// Groups are the user's groups, beside system:authenticated.
	Groups []string `json:"groups,omitempty"`
}

// SchemaGate describes what objects are validated against.
type SchemaGate struct {
	// KubernetesVersion is the version of the cluster, such as 1.34. The default is the newest that is known.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// CRDs lists files and directories in the source with CustomResourceDefinitions that the cluster has already. Those in the result
	// are known anyway.
	CRDs []string `json:"crds,omitempty"`
	// Rules sets the severity of rules by their codes: Error, Warning, Info or Off.
	Rules map[string]string `json:"rules,omitempty"`
}

// GateSeverity is the severity at which a gate closes.
type GateSeverity string

// The severities of a gate.
const (
	GateError   GateSeverity = "Error"
	GateWarning GateSeverity = "Warning"
	GateNever   GateSeverity = "Never"
)
