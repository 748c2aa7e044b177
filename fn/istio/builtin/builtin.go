// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package builtin chooses the release of Istio that the built-in policy istio follows, rejects versions and images that
// do not fit it, and returns the policy for a release. A proxy of another minor in the sidecar of this one would be a mesh
// of two versions that no control plane makes.
package builtin

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/policies"
)

// Name is the name of the policy.
const Name = "istio"

// The minors of Istio 1 that the policy covers. DefaultMinor is followed if neither a version nor an image selects
// another. docs/limits.md describes the sources of Istio that the policy was compared with.
const (
	OldestMinor  = 28
	NewestMinor  = release.NewestMinor
	DefaultMinor = NewestMinor
)

// Covered describes the covered versions as text: "Istio 1.28 to 1.32".
func Covered() string { return fmt.Sprintf("Istio 1.%d to 1.%d", OldestMinor, NewestMinor) }

// Covers reports whether the policy covers the minor of a version.
func Covers(v istio.Version) bool { return OldestMinor <= v.Minor && v.Minor <= NewestMinor }

// Choice is the release that the policy follows.
type Choice struct {
	Version istio.Version
	// From is the source of the version, as text, where the policy does not set it, such as
	// `injector.overrides.global.tag "1.30.3"`.
	From string
	// Warnings lists what is uncertain.
	Warnings []string
}

// Choose returns the release for spec.istio.version, which may be empty, and the overrides of a policy. The error
// names the version or the image that does not fit, and the ways out.
func Choose(version string, overrides map[string]any) (Choice, error) {
	named, err := versionsIn(overrides)
	if err != nil {
		return Choice{}, err
	}
	if version != "" {
		v, ok := istio.ParseVersion(version)
		if !ok {
			return Choice{}, strict.AtField(fmt.Errorf("reading the Istio version %q: want one such as 1.31 or 1.30.3", version), "version")
		}
		return chooseExplicit(v, named)
	}
	c := Choice{Version: istio.Version{Minor: DefaultMinor, Patch: -1}, From: "the built-in policy"}
	for i, n := range named {
		if !n.known && numbered.MatchString(n.text) {
			return Choice{}, n.wrong("%s is no release of Istio 1, and the built-in policy covers %s; set istio.version to the release that the image is made of, "+
				"or import what is installed: prerig import --context NAME", n, Covered())
		}
		if !n.known {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s is no version of Istio: the built-in policy follows Istio %s; set istio.version if the image is of another", n, c.Version))
			continue
		}
		if !Covers(n.version) {
			return Choice{}, n.wrong("%s is of Istio %s, and the built-in policy covers %s; %s", n, n.version.Short(), Covered(), wayOut(n.version))
		}
		for _, o := range named[:i] {
			if o.known && o.version.Minor != n.version.Minor {
				return Choice{}, n.wrong("%s and %s are of two minor versions of Istio, %s and %s; name images of one", o, n, o.version.Short(), n.version.Short())
			}
		}
		if c.Version.Patch < 0 {
			c.Version, c.From = istio.Version{Minor: n.version.Minor, Patch: n.version.Patch}, n.String()
		}
	}
	return c, nil
}

// chooseExplicit returns the release of a version that the policy sets. One that has only the minor follows the patch
// release of the tag.
func chooseExplicit(v istio.Version, named []namedVersion) (Choice, error) {
	if !Covers(v) {
		return Choice{}, strict.AtField(fmt.Errorf("the version is %s, and the built-in policy covers %s; %s", v, Covered(), wayOut(v)), "version")
	}
	for _, n := range named {
		switch {
		case !n.known: // the policy defines its version
		case !Covers(n.version):
			return Choice{}, n.wrong("%s is of Istio %s, and the version is %s: the proxy would not fit its sidecar; %s", n, n.version.Short(), v, wayOut(n.version))
		case n.version.Minor != v.Minor:
			return Choice{}, n.wrong("%s is of Istio %s, and the version is %s: the proxy would not fit its sidecar; set istio.version to %q, or name an image of %s",
				n, n.version.Short(), v, n.version.Short(), v.Short())
		case v.Patch < 0:
			v.Patch = n.version.Patch
		}
	}
	return Choice{Version: v}, nil
}

// newestGuess is how many minor versions after the newest that is known may exist.
const newestGuess = 3

// wayOut is what to do for a version that the policy does not cover. No chart is recommended of a version that cannot
// exist yet.
func wayOut(v istio.Version) string {
	if v.Minor > NewestMinor+newestGuess {
		return fmt.Sprintf("use a version from 1.%d to 1.%d, or a newer release of Prerig", OldestMinor, NewestMinor)
	}
	chart := v.Short() + ".x"
	if v.Patch >= 0 {
		chart = fmt.Sprintf("%s.%d", v.Short(), v.Patch)
	}
	return fmt.Sprintf("import what Istio %s installs, with its chart: helm template istiod istio/istiod -n istio-system --version %s | prerig import, "+
		"or from the cluster: prerig import --context NAME; or use a version from 1.%d to 1.%d", v.Short(), chart, OldestMinor, NewestMinor)
}

// namedVersion is a version in a value that names images.
type namedVersion struct {
	path, text string
	version    istio.Version
	// known is false where the text is a tag that is no version of Istio, such as latest.
	known bool
}

// wrong is an error about the value.
func (n namedVersion) wrong(format string, args ...any) error {
	at := []any{"injector", "overrides"}
	for key := range strings.SplitSeq(n.path, ".") {
		at = append(at, key)
	}
	return strict.AtField(fmt.Errorf(format, args...), at...)
}

func (n namedVersion) String() string { return fmt.Sprintf("injector.overrides.%s %q", n.path, n.text) }

// proxyImage finds the tag of an image whose name is one of Istio's proxy.
var proxyImage = lazyregexp.New(`(?:^|/)(?:istio-)?proxy[A-Za-z0-9_.-]*:([A-Za-z0-9_][A-Za-z0-9_.-]*)$`)

// numbered finds tags that look like a version.
var numbered = lazyregexp.New(`^v?\d+\.\d+`)

// versionsIn returns the versions in the overrides: of the tag, the hub and the proxy's images.
func versionsIn(overrides map[string]any) ([]namedVersion, error) {
	values := istio.Values(overrides)
	var out []namedVersion
	switch tag := valueAt(overrides, "global", "tag").(type) {
	case nil:
	case string:
		n := namedVersion{path: "global.tag", text: tag}
		release, _, _ := strings.Cut(tag, "@")
		if n.version, n.known = istio.ParseVersion(release); n.known || release != "" {
			out = append(out, n)
		}
	default:
		return nil, namedVersion{path: "global.tag"}.wrong("injector.overrides.global.tag is %v, which is no text; a tag is written in quotes, such as %q", tag, fmt.Sprintf("1.%d.0", DefaultMinor))
	}
	hub := values.String("global", "hub")
	if _, path, ok := strings.Cut(hub, "/"); ok {
		for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == ':' }) {
			if v, ok := istio.ParseVersion(part); ok {
				out = append(out, namedVersion{"global.hub", hub, v, true})
			}
		}
	}
	for _, path := range [][]string{{"global", "proxy", "image"}, {"global", "proxy_init", "image"}} {
		image := values.String(path...)
		reference, _, _ := strings.Cut(image, "@")
		m := proxyImage.FindStringSubmatch(reference)
		if m == nil {
			continue
		}
		if v, ok := istio.ParseVersion(m[1]); ok {
			out = append(out, namedVersion{strings.Join(path, "."), image, v, true})
		}
	}
	return out, nil
}

func valueAt(v map[string]any, path ...string) any {
	var at any = v
	for _, key := range path {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	return at
}

// Policy returns the text of the built-in policy for a version that it covers: with the parts that the version has,
// its number, and its images. Where only the minor is known, it is the newest known release of that.
func Policy(v istio.Version) []byte {
	text, _ := policies.Get(Name)
	return forRelease(text, v)
}
