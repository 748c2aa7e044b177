// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import "github.com/prerig/prerig/fn/istio/release"

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

// Profile says how the injector of one release of Istio behaves. Get one with ProfileOf. What a profile has is
// listed in the tables featureTable and functionTable, which is where to compare it with Istio.
type Profile struct {
	release  release.Release
	features map[Feature]bool
}

// ProfileOf returns the profile of a version. Where only the minor is known, its newest release is taken. Versions older than
// the oldest take the oldest profile, and those newer than the newest take the newest; known is false then, and also for
// a patch release that is newer than the newest known of its minor.
func ProfileOf(v Version) (p *Profile, known bool) {
	r := v.Release()
	p = &Profile{release: r, features: make(map[Feature]bool, len(featureTable))}
	if r.Minor < release.OldestMinor {
		p.release = release.Release{Minor: release.OldestMinor}
	}
	if r.Minor > release.NewestMinor {
		p.release = release.Newest(release.NewestMinor)
	}
	for _, row := range featureTable {
		if row.Contains(p.release) {
			p.features[row.Feature] = true
		}
	}
	return p, r.Known()
}

// Minor is the minor version of Istio that the profile describes.
func (p *Profile) Minor() int { return p.release.Minor }

// Release is the release of Istio that the profile describes.
func (p *Profile) Release() release.Release { return p.release }

// Has says whether the version has a feature.
func (p *Profile) Has(f Feature) bool { return p.features[f] }

// Generation is the generation that the version's own configuration has.
func (p *Profile) Generation() Generation {
	switch {
	case p.release.Minor <= 1:
		return GenerationA
	case p.release.Minor <= 8:
		return GenerationB
	default:
		return GenerationC
	}
}

// IgnoredNamespaces are the namespaces in which the injector never injects (source: IgnoredNamespaces in
// pkg/kube/inject/inject.go of each version).
func (p *Profile) IgnoredNamespaces() []string {
	if p.release.Minor >= 9 {
		return []string{"kube-system", "kube-public", "kube-node-lease", "local-path-storage"}
	}
	return []string{"kube-system", "kube-public"}
}
