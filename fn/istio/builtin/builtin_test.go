// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/builtin"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/policies"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, version, global, want, from, fails, warns string }{
		{name: "nothing is said", want: "1.32", from: "the built-in policy"},
		{name: "a minor", version: "1.30", want: "1.30"},
		{name: "a patch release", version: "1.28.3", want: "1.28.3"},
		{name: "the tag", global: `{tag: "1.30.3"}`, want: "1.30.3", from: `injector.overrides.global.tag "1.30.3"`},
		{name: "a tag of a variant", global: `{tag: 1.29.2-distroless}`, want: "1.29.2", from: `injector.overrides.global.tag "1.29.2-distroless"`},
		{name: "a tag with a digest", global: `{tag: "1.29.2@sha256:abc"}`, want: "1.29.2", from: `injector.overrides.global.tag "1.29.2@sha256:abc"`},
		{name: "the tag says which patch release", version: "1.28", global: `{tag: "1.28.3"}`, want: "1.28.3"},
		{name: "a tag that fits", version: "1.30.0", global: `{tag: "1.30.3"}`, want: "1.30.0"},
		{name: "an image", global: `{proxy: {image: "registry.example/istio/proxyv2:1.29.1"}}`, want: "1.29.1", from: `injector.overrides.global.proxy.image "registry.example/istio/proxyv2:1.29.1"`},
		{name: "a hub", global: `{hub: "registry.example/istio/1.30.2"}`, want: "1.30.2", from: `injector.overrides.global.hub "registry.example/istio/1.30.2"`},
		{name: "a registry by its address", global: `{hub: "1.2.3.4:5000/istio"}`, want: "1.32", from: "the built-in policy"},
		{name: "an image of another name", global: `{proxy: {image: "registry.example/own:1.2"}}`, want: "1.32", from: "the built-in policy"},
		{name: "a tag that is no version", global: `{tag: prod}`, want: "1.32", from: "the built-in policy", warns: `global.tag "prod" is no version of Istio`},
		{name: "a tag that is no version, of a version", version: "1.30", global: `{tag: prod}`, want: "1.30"},
		{name: "a numbering of one's own, of a version", version: "1.30", global: `{tag: "2.6.1"}`, want: "1.30"},

		{name: "an old version", version: "1.20", fails: "the version is 1.20, and the built-in policy covers Istio 1.28 to 1.32; import what Istio 1.20 installs"},
		{name: "a version that does not exist", version: "1.99", fails: "the version is 1.99"},
		{name: "no version", version: "latest", fails: `reading the Istio version "latest"`},
		{name: "an old tag", global: `{tag: "1.27.3"}`, fails: `global.tag "1.27.3" is of Istio 1.27, and the built-in policy covers Istio 1.28 to 1.32; import what Istio 1.27 installs, ` +
			"with its chart: helm template istiod istio/istiod -n istio-system --version 1.27.3 | prerig import"},
		{name: "a vendor's old tag", global: `{tag: 1.27.2-asm.5}`, fails: "is of Istio 1.27"},
		{name: "a tag of the far future", global: `{tag: "1.99.0"}`, fails: "is of Istio 1.99"},
		{name: "a numbering of one's own", global: `{tag: "2.6.1"}`, fails: `global.tag "2.6.1" is no release of Istio 1`},
		{name: "a tag that is a number", global: `{tag: 1.30}`, fails: "global.tag is 1.3, which is no text"},
		{name: "a tag of another minor", version: "1.30", global: `{tag: "1.29.1"}`, fails: `is of Istio 1.29, and the version is 1.30: the proxy would not fit its sidecar; set istio.version to "1.29"`},
		{name: "an image of another minor", version: "1.31", global: `{proxy: {image: "r.example/proxyv2:1.30.1"}}`, fails: `global.proxy.image "r.example/proxyv2:1.30.1" is of Istio 1.30, and the version is 1.31`},
		{name: "an old image", global: `{proxy_init: {image: "r.example/proxyv2:1.20.1"}}`, fails: `global.proxy_init.image "r.example/proxyv2:1.20.1" is of Istio 1.20`},
		{name: "an old image with a digest", global: `{proxy: {image: "r.example/proxyv2:1.20.1@sha256:abc"}}`, fails: "is of Istio 1.20"},
		{name: "an old hub", version: "1.31", global: `{hub: "gcr.io/mirror/istio-1:1.20.0"}`, fails: "is of Istio 1.20"},
		{name: "two minors", global: `{tag: "1.30.3", proxy: {image: "r.example/proxyv2:1.29.1"}}`, fails: "are of two minor versions of Istio, 1.30 and 1.29"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var global map[string]any
			if err := yaml.Unmarshal([]byte(c.global), &global); err != nil {
				t.Fatal(err)
			}
			got, err := builtin.Choose(c.version, map[string]any{"global": global})
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("error %v, want %q; %s", err, c.fails, got.Version)
				}
				return
			}
			if err != nil || got.Version.String() != c.want || got.From != c.from {
				t.Errorf("%s from %q, error %v", got.Version, got.From, err)
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, c.warns) || c.warns == "" && warnings != "" {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

// TestEveryReleaseHasAPolicy that says its version and its images, whose templates all parse, and in which no mark is left.
func TestEveryReleaseHasAPolicy(t *testing.T) {
	t.Parallel()
	for minor := builtin.OldestMinor; minor <= builtin.NewestMinor; minor++ {
		for patch := -1; patch <= release.Newest(minor).Patch; patch++ {
			v := istio.Version{Minor: minor, Patch: patch}
			text := builtin.Policy(v)
			p, err := v1alpha1.Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			i := p.Spec.Istio
			in, err := istio.New(istio.Options{Version: i.Version, Config: i.Injector.Config, Values: i.Injector.Values, Mesh: i.MeshConfig, KubernetesVersion: i.KubernetesVersion})
			if err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			if in.Detection().Version != v {
				t.Errorf("%s: it follows %s", v, in.Detection().Version)
			}
			tag, ok := istio.ParseVersion(in.Values().String("global", "tag"))
			if !ok || tag.Minor != minor || patch >= 0 && tag.Patch != patch {
				t.Errorf("%s: its images are of %s", v, tag)
			}
			for _, mark := range []string{"{{- /* since", "{{- /* before", "{{- /* end", "# since", "# end"} {
				if bytes.Contains(text, []byte(mark)) {
					t.Errorf("%s: the mark %q is left", v, mark)
				}
			}
		}
	}
}

// TestThePolicyAsItIsFollowsTheDefault: with its marks, which are comments, it makes what the one for that version makes.
func TestThePolicyAsItIsFollowsTheDefault(t *testing.T) {
	t.Parallel()
	text, _ := policies.Get(builtin.Name)
	plain, err := v1alpha1.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	made, err := v1alpha1.Parse(builtin.Policy(istio.Version{Minor: builtin.DefaultMinor, Patch: -1}))
	if err != nil {
		t.Fatal(err)
	}
	if plain.Spec.Istio.Version != fmt.Sprintf("1.%d", builtin.DefaultMinor) || made.Spec.Istio.Version != plain.Spec.Istio.Version {
		t.Errorf("they follow %s and %s", plain.Spec.Istio.Version, made.Spec.Istio.Version)
	}
	if with, without := linesOf(plain.Spec.Istio.Injector.Config), linesOf(made.Spec.Istio.Injector.Config); with != without {
		t.Errorf("the templates differ:\n%s\nand\n%s", with, without)
	}
}

// linesOf returns a text without its marks.
func linesOf(config string) string {
	var out []string
	inside := false
	for _, line := range strings.Split(config, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "{{- /* before 1."):
			inside = true
		case text == "*/}}":
			inside = false
		case !inside && !strings.HasPrefix(text, "{{- /* since 1.") && text != "{{- /* end */}}":
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
