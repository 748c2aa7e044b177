// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/istio/release"
)

// TemplateData is what templates are rendered with: the fields of every version in one (source: SidecarTemplateData in
// pkg/kube/inject/inject.go). Which versions have which field is in fieldTable; a template fails where it reads a field
// that its version does not have.
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
	// Revision of the control plane.
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
	// NativeSidecars reports whether the proxy is to be an init container.
	NativeSidecars bool
}

// fieldRow lists the releases that have a field of TemplateData.
type fieldRow struct {
	Name string
	release.Spans
}

var fieldTable = []fieldRow{
	{"ObjectMeta", release.Always()},
	{"Spec", release.Always()},
	{"ProxyConfig", release.Always()},
	{"MeshConfig", release.Always()},
	{"DeploymentMeta", release.Since("1.1")},
	{"Values", release.Since("1.2")},
	{"TypeMeta", release.Since("1.3")},
	{"Revision", release.Since("1.9")},
	{"EstimatedConcurrency", release.Between("1.10.1", "1.17")},
	{"ProxyImage", release.Since("1.13")},
	{"CompliancePolicy", release.Since("1.19.8", "1.20.4", "1.21")},
	{"ProxyUID", release.Since("1.20")},
	{"ProxyGID", release.Since("1.20")},
	{"InboundTrafficPolicyMode", release.Since("1.22")},
	{"NativeSidecars", release.Since("1.27")},
	{"ProxyInitImage", release.Since("1.31")},
}

// FieldVersions describes the versions of Istio in which templates can read a field of their data, such as "1.13
// and later". It returns "" for a field that no version has.
func FieldVersions(name string) string { return fieldSpans(name).String() }

// fieldSpans are the versions that have a field.
func fieldSpans(name string) release.Spans {
	for _, row := range fieldTable {
		if row.Name == name {
			return row.Spans
		}
	}
	return nil
}

// deploymentMetaSpan is the versions whose DeploymentMeta is a whole ObjectMeta.
var deploymentMetaSpan = release.Between("1.1", "1.21")
