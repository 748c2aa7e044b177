// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/istio/mesh"
)

// TemplateData is what templates are rendered with: the fields of every version in one (source: SidecarTemplateData in
// pkg/kube/inject/inject.go). Which versions have which field is in fieldTable; a template that uses a field which its
// version does not have is refused by New.
type TemplateData struct {
	// TypeMeta is the API version and kind of the workload.
	TypeMeta metav1.TypeMeta
	// DeploymentMeta names the workload: a metav1.ObjectMeta up to 1.21, a types.NamespacedName since.
	DeploymentMeta any
	// ObjectMeta and Spec are the pod's, without what an earlier injection added.
	ObjectMeta metav1.ObjectMeta
	Spec       corev1.PodSpec
	// ProxyConfig is the one that holds for this pod, MeshConfig the mesh's.
	ProxyConfig *mesh.ProxyConfig
	MeshConfig  *mesh.MeshConfig
	// Values are the injector's values.
	Values map[string]any
	// Revision of the control plane, empty for the default.
	Revision string
	// EstimatedConcurrency is the number of the proxy's threads.
	EstimatedConcurrency int
	// ProxyImage and ProxyInitImage are HUB/IMAGE:TAG.
	ProxyImage     string
	ProxyInitImage string
	// CompliancePolicy is the control plane's, such as fips-140-3.
	CompliancePolicy string
	// ProxyUID and ProxyGID are the user and group of the proxy.
	ProxyUID, ProxyGID int64
	// InboundTrafficPolicyMode is localhost or passthrough.
	InboundTrafficPolicyMode string
	// NativeSidecars says whether the proxy is to be an init container.
	NativeSidecars bool
}

// fieldRow says which minors have a field of TemplateData.
type fieldRow struct {
	Name string
	Span
}

var fieldTable = []fieldRow{
	{"ObjectMeta", Span{0, newest}},
	{"Spec", Span{0, newest}},
	{"ProxyConfig", Span{0, newest}},
	{"MeshConfig", Span{0, newest}},
	{"DeploymentMeta", Span{1, newest}},
	{"Values", Span{2, newest}},
	{"TypeMeta", Span{3, newest}},
	{"Revision", Span{9, newest}},
	{"EstimatedConcurrency", Span{10, 17}},
	{"ProxyImage", Span{13, newest}},
	{"CompliancePolicy", Span{19, newest}},
	{"ProxyUID", Span{20, newest}},
	{"ProxyGID", Span{20, newest}},
	{"InboundTrafficPolicyMode", Span{22, newest}},
	{"NativeSidecars", Span{27, newest}},
	{"ProxyInitImage", Span{31, newest}},
}

// FieldVersions says in which versions of Istio templates can read a field of their data, as text such as
// "1.13 and later". It returns "" for a field that no version has.
func FieldVersions(name string) string { return spansText(fieldSpans(name)) }

// fieldSpans are the versions that have a field.
func fieldSpans(name string) []Span {
	var spans []Span
	for _, row := range fieldTable {
		if row.Name == name {
			spans = append(spans, row.Span)
		}
	}
	return spans
}

// deploymentMetaSpan is the versions whose DeploymentMeta is a whole ObjectMeta.
var deploymentMetaSpan = Span{1, 21}
