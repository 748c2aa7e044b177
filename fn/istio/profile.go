// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

// Generation is the shape of the injector's configuration.
type Generation string

// The generations.
const (
	// GenerationA is Istio 1.0 and 1.1: one template with [[ ]] and no values, appended to the pod.
	GenerationA Generation = "A"
	// GenerationB is Istio 1.2 to 1.8: one template with {{ }} and values, appended to the pod.
	GenerationB Generation = "B"
	// GenerationC is Istio 1.9 and later: a map of templates, merged into the pod as strategic merge patches.
	GenerationC Generation = "C"
)

// Profile describes how the injector of one release of Istio behaves. Get one with ProfileOf. Its contents are
// listed in the table of package feature and in functionTable, which is where to compare it with Istio.
type Profile struct {
	release  release.Release
	features feature.Set
}

// ProfileOf returns the profile of a version. Where only the minor is known, its newest release is taken. Versions older than
// the oldest take the oldest profile, and those newer than the newest take the newest; known is false then, and also for
// a patch release that is newer than the newest known of its minor.
func ProfileOf(v Version) (p *Profile, known bool) {
	r := v.Release()
	p = &Profile{release: r}
	if r.Minor < release.OldestMinor {
		p.release = release.Release{Minor: release.OldestMinor}
	}
	if r.Minor > release.NewestMinor {
		p.release = release.Newest(release.NewestMinor)
	}
	p.features = feature.Of(p.release)
	return p, r.Known()
}

// Minor is the minor version of Istio that the profile describes.
func (p *Profile) Minor() int { return p.release.Minor }

// Release is the release of Istio that the profile describes.
func (p *Profile) Release() release.Release { return p.release }

// Has reports whether the version has a feature.
func (p *Profile) Has(name feature.Name) bool { return p.features.Has(name) }

// Generation is the generation that the version's own configuration has.
func (p *Profile) Generation() Generation {
	switch {
	case !p.Has(feature.Values):
		return GenerationA
	case !p.Has(feature.TemplatesMerged):
		return GenerationB
	default:
		return GenerationC
	}
}

// The annotation with a pod's own proxy config, and the name that it has in 1.6.0.
const (
	proxyConfigAnnotation      = "proxy.istio.io/config"
	firstProxyConfigAnnotation = "istio.io/proxyConfig"
)

// ProxyConfigAnnotation is the annotation that the version reads a pod's own proxy config from.
func (p *Profile) ProxyConfigAnnotation() string {
	if p.Has(feature.ProxyConfigFirstName) {
		return firstProxyConfigAnnotation
	}
	return proxyConfigAnnotation
}

// DeploymentMeta returns the template's view of the workload in the type that the version has. pod is the pod's metadata,
// which the whole ObjectMeta of versions up to 1.21 carries.
func (p *Profile) DeploymentMeta(name, namespace string, pod *metav1.ObjectMeta) any {
	if deploymentMetaSpan.Contains(p.release) {
		meta := *pod
		meta.Name, meta.Namespace, meta.GenerateName = name, namespace, ""
		return meta
	}
	return types.NamespacedName{Name: name, Namespace: namespace}
}
