// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

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

// Profile says how the injector of one minor version of Istio behaves. Get one with ProfileOf. What a profile has is
// listed in the tables featureTable and functionTable, which is where to compare it with Istio.
type Profile struct {
	minor    int
	features map[Feature]bool
}

// ProfileOf returns the profile of a minor version. Minors older than the oldest take the oldest profile, and those newer
// than the newest take the newest; known is false then.
func ProfileOf(minor int) (p *Profile, known bool) {
	known = minor >= OldestMinor && minor <= NewestMinor
	minor = min(max(minor, OldestMinor), NewestMinor)
	p = &Profile{minor: minor, features: make(map[Feature]bool, len(featureTable))}
	for _, row := range featureTable {
		if row.Contains(minor) {
			p.features[row.Feature] = true
		}
	}
	return p, known
}

// Minor is the minor version of Istio that the profile describes.
func (p *Profile) Minor() int { return p.minor }

// Has says whether the version has a feature.
func (p *Profile) Has(f Feature) bool { return p.features[f] }

// Generation is the generation that the version's own configuration has.
func (p *Profile) Generation() Generation {
	switch {
	case p.minor <= 1:
		return GenerationA
	case p.minor <= 8:
		return GenerationB
	default:
		return GenerationC
	}
}

// IgnoredNamespaces are the namespaces in which the injector never injects (source: IgnoredNamespaces in
// pkg/kube/inject/inject.go of each version).
func (p *Profile) IgnoredNamespaces() []string {
	if p.minor >= 9 {
		return []string{"kube-system", "kube-public", "kube-node-lease", "local-path-storage"}
	}
	return []string{"kube-system", "kube-public"}
}

// Span is a range of minor versions, both ends included. To is newest where the thing still exists.
type Span struct{ From, To int }

// newest stands for "until now" in the tables.
const newest = 1 << 20

// Contains says whether a minor version is in the range.
func (s Span) Contains(minor int) bool { return minor >= s.From && minor <= s.To }

// String returns the range as text: "1.9 to 1.27", "1.28 and later", "1.3".
func (s Span) String() string {
	from, to := Version{Minor: s.From, Patch: -1}.String(), Version{Minor: s.To, Patch: -1}.String()
	switch {
	case s.To == newest && s.From <= OldestMinor:
		return "every version"
	case s.To == newest:
		return from + " and later"
	case s.From == s.To:
		return from
	default:
		return from + " to " + to
	}
}
