// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// helmVersion is .Capabilities.HelmVersion.Version. It changes only together with the library that renders.
const helmVersion = "v4.3.1"

// servedAPI is a group version that Kubernetes itself serves by default, from a minor version on and up to, but without,
// another; 0 for none.
type servedAPI struct {
	groupVersion string
	from, until  int
}

// servedAPIs are those of Kubernetes 1.16 and later. Beta APIs that have to be switched on are not among them. From the
// Kubernetes API's own life cycle (k8s.io/api, zz_generated.prerelease-lifecycle.go) and the deprecation guide.
var servedAPIs = []servedAPI{
	{"v1", 0, 0},
	{"admissionregistration.k8s.io/v1", 0, 0},
	{"admissionregistration.k8s.io/v1beta1", 0, 22},
	{"apiextensions.k8s.io/v1", 0, 0},
	{"apiextensions.k8s.io/v1beta1", 0, 22},
	{"apiregistration.k8s.io/v1", 0, 0},
	{"apiregistration.k8s.io/v1beta1", 0, 22},
	{"apps/v1", 0, 0},
	{"authentication.k8s.io/v1", 0, 0},
	{"authentication.k8s.io/v1beta1", 0, 22},
	{"authorization.k8s.io/v1", 0, 0},
	{"authorization.k8s.io/v1beta1", 0, 22},
	{"autoscaling/v1", 0, 0},
	{"autoscaling/v2", 23, 0},
	{"autoscaling/v2beta1", 0, 25},
	{"autoscaling/v2beta2", 0, 26},
	{"batch/v1", 0, 0},
	{"batch/v1beta1", 0, 25},
	{"certificates.k8s.io/v1", 19, 0},
	{"certificates.k8s.io/v1beta1", 0, 22},
	{"coordination.k8s.io/v1", 0, 0},
	{"coordination.k8s.io/v1beta1", 0, 22},
	{"discovery.k8s.io/v1", 21, 0},
	{"discovery.k8s.io/v1beta1", 0, 25},
	{"events.k8s.io/v1", 19, 0},
	{"events.k8s.io/v1beta1", 0, 25},
	{"extensions/v1beta1", 0, 22},
	{"flowcontrol.apiserver.k8s.io/v1", 29, 0},
	{"flowcontrol.apiserver.k8s.io/v1beta1", 20, 26},
	{"flowcontrol.apiserver.k8s.io/v1beta2", 23, 29},
	{"flowcontrol.apiserver.k8s.io/v1beta3", 26, 32},
	{"networking.k8s.io/v1", 0, 0},
	{"networking.k8s.io/v1beta1", 0, 22},
	{"node.k8s.io/v1", 20, 0},
	{"node.k8s.io/v1beta1", 0, 25},
	{"policy/v1", 21, 0},
	{"policy/v1beta1", 0, 25},
	{"rbac.authorization.k8s.io/v1", 0, 0},
	{"rbac.authorization.k8s.io/v1beta1", 0, 22},
	{"resource.k8s.io/v1", 34, 0},
	{"scheduling.k8s.io/v1", 0, 0},
	{"scheduling.k8s.io/v1beta1", 0, 22},
	{"storage.k8s.io/v1", 0, 0},
	{"storage.k8s.io/v1beta1", 0, 27},
}

// clusterCapabilities returns what templates see of a cluster.
func clusterCapabilities(release *v1alpha1.Helm) (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(release.KubeVersion)
	minor, ok := release.KubeMinor()
	if err != nil || !ok {
		return nil, fmt.Errorf("%q is not a version of Kubernetes", release.KubeVersion)
	}
	var apis common.VersionSet
	for _, api := range servedAPIs {
		if minor >= api.from && (api.until == 0 || minor < api.until) {
			apis = append(apis, api.groupVersion)
		}
	}
	for _, api := range release.APIVersions {
		if !slices.Contains(apis, api) {
			apis = append(apis, api)
		}
	}
	out := common.DefaultCapabilities.Copy()
	out.KubeVersion, out.APIVersions = *version, apis
	// Neither the toolchain, nor a flag of the linker, nor the version of a library is an input.
	build := &out.HelmVersion
	build.Version, build.GoVersion, build.KubeClientVersion, build.GitCommit, build.GitTreeState = helmVersion, "", "", "", ""
	return out, nil
}
