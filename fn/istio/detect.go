// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Detection is the chosen version and the reason for it.
type Detection struct {
	Version    Version
	Generation Generation
	// From describes the source of the version, as text: `values.global.tag "1.24.6"`.
	From string
	// Warnings lists what is uncertain.
	Warnings []string
	// Notes lists the assumptions about the patch release.
	Notes []string
	// Vendor is whose templates these are, such as "OpenShift Service Mesh 2.5" or "a vendor"; empty for Istio's own.
	Vendor string

	vendorLabel string
}

// imageTag finds Istio's proxy images in the text of a template.
var imageTag = lazyregexp.New(`/(?:proxyv2|proxy_init|proxy_debug|proxy|proxytproxy|istio-proxy)[^:"'\s]*:([A-Za-z0-9_][A-Za-z0-9_.-]*)`)

// detectVersion uses the first of these sources: the options' explicit version, the values' tag, the tag in the
// proxy image's name, the functions and fields that the templates use.
func detectVersion(o Options, c *Config, v Values, hasValues bool) (Detection, error) {
	d := Detection{Generation: c.Generation(hasValues)}
	vendorMinor, vendorKnown := d.findServiceMesh(c)
	if o.Version != "" {
		version, ok := ParseVersion(o.Version)
		if !ok {
			return d, fmt.Errorf("reading the Istio version %q: want one such as 1.31 or 1.24.6", o.Version)
		}
		d.Version, d.From = version, cmp.Or(o.VersionFrom, "the policy")
		return d, d.checkConsistentShape()
	}
	if vendorKnown {
		d.Version, d.From = Version{Minor: vendorMinor, Patch: -1}, "the label "+d.vendorLabel+" in the templates"
		return d, d.checkConsistentShape()
	}
	if tag := v.String("global", "tag"); tag != "" {
		if version, ok := ParseVersion(tag); ok {
			d.Version, d.From = version, fmt.Sprintf("values.global.tag %q", tag)
			return d, d.checkConsistentShape()
		}
	}
	for _, path := range [][]string{{"global", "proxy", "image"}, {"global", "proxy_init", "image"}} {
		image := v.String(path...)
		if i := strings.LastIndex(image, ":"); i >= 0 {
			if version, ok := ParseVersion(image[i+1:]); ok {
				d.Version, d.From = version, fmt.Sprintf("values.%s %q", strings.Join(path, "."), image)
				return d, d.checkConsistentShape()
			}
		}
	}
	for _, m := range imageTag.FindAllStringSubmatch(c.Template, -1) {
		if version, ok := ParseVersion(m[1]); ok {
			d.Version, d.From = version, fmt.Sprintf("the image %q in the template", strings.TrimPrefix(m[0], "/"))
			return d, d.checkConsistentShape()
		}
	}
	return d.narrowByUsage(c, v)
}

// assumePatch notes the assumption about the patch release: the newest known one if the patch is unknown and
// something depends on it, or that a newer one behaves like the newest known. A configuration that is known is made for the
// newest patch release.
func (d *Detection) assumePatch(c *Config, known bool) {
	v, assumed := d.Version, release.Newest(d.Version.Minor)
	if v.Minor < OldestMinor || v.Minor > NewestMinor {
		return
	}
	if !v.Release().Known() {
		d.Notes = append(d.Notes, fmt.Sprintf("Istio %s is newer than %s, the newest 1.%d whose injector is known: it is taken to behave the same", v, assumed, v.Minor))
	}
	if v.Patch >= 0 || known {
		return
	}
	if depends := dependsOnPatch(v.Minor, strings.Join(templateTexts(c), "\n")); len(depends) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("the patch release of Istio 1.%d is not known, and %s was assumed; the releases of 1.%d differ in: %s; set istio.version",
			v.Minor, assumed, v.Minor, strings.Join(depends, "; ")))
	}
}

// dependsOnPatch lists what patch releases of a minor do differently, and of functions and fields those that the templates
// name.
func dependsOnPatch(minor int, templates string) []string {
	var out []string
	for _, name := range feature.DependingOnPatch(minor) {
		out = append(out, string(name))
	}
	for _, row := range functionTable {
		if row.DependsOnPatch(minor) && strings.Contains(templates, row.Name) && !slices.Contains(out, "the function "+row.Name) {
			out = append(out, "the function "+row.Name)
		}
	}
	for _, row := range fieldTable {
		if row.DependsOnPatch(minor) && strings.Contains(templates, "."+row.Name) {
			out = append(out, "the field ."+row.Name)
		}
	}
	return out
}

// checkConsistentShape checks that the version has configurations of this shape.
func (d *Detection) checkConsistentShape() error {
	if d.Version.Minor > NewestMinor {
		d.Warnings = append(d.Warnings, fmt.Sprintf("Istio %s is newer than 1.%d, the newest whose injector is known: it is taken to behave the same",
			d.Version, NewestMinor))
	}
	p, _ := ProfileOf(d.Version)
	got, want := d.Generation, p.Generation()
	if (got == GenerationC) == (want == GenerationC) {
		return nil
	}
	shape := map[Generation]string{
		GenerationA: "one template with [[ ]]", GenerationB: "one template", GenerationC: "a map of templates",
	}
	return fmt.Errorf("reading the injector configuration: it has %s, as Istio %s has it, but the version is %s (from %s); give the version that it belongs to",
		shape[got], generationSpans(got), d.Version, d.From)
}

func generationSpans(g Generation) release.Spans {
	switch g {
	case GenerationA:
		return release.Between("1.0", "1.1")
	case GenerationB:
		return release.Between("1.2", "1.8")
	default:
		return release.Since("1.9")
	}
}

// hintTable lists texts that only the stock templates of some versions have.
var hintTable = []struct {
	Text string
	release.Spans
}{
	{"ENABLE_NATIVE_SIDECARS", release.Between("1.19", "1.26")},
	{"PILOT_ENABLE_INBOUND_PASSTHROUGH", release.Between("1.10", "1.21")},
	{"ENABLE_LEGACY_FSGROUP_INJECTION", release.Between("1.9", "1.18")},
	{"/app-lifecycle", release.Since("1.25")},
	{"sidecar.istio.io/nativeSidecar", release.Since("1.24")},
	{"istio-locality", release.Since("1.9")},
	{"pilot-agent wait", release.Since("1.7")},
	{"rewriteAppHTTPProbe:", release.Between("1.1", "1.8")},
}

// narrowByUsage narrows the version down by what the templates use, and picks the newest possible one.
func (d Detection) narrowByUsage(c *Config, v Values) (Detection, error) {
	possible := generationSpans(d.Generation).Hull()
	texts := templateTexts(c)
	for _, text := range texts {
		for _, span := range usedSpans(text, d.Generation) {
			possible = commonSpan(possible, span)
		}
		for _, hint := range hintTable {
			if strings.Contains(text, hint.Text) {
				possible = commonSpan(possible, hint.Hull())
			}
		}
	}
	d.Version = Version{Minor: min(possible.To.Minor, NewestMinor), Patch: -1}
	d.From = "the functions and fields that the templates use"
	what := "there is no tag in the values and no proxy image with one"
	if tag := v.String("global", "tag"); tag != "" {
		what = fmt.Sprintf("values.global.tag %q is not a version", tag)
	}
	d.Warnings = append(d.Warnings, fmt.Sprintf("the Istio version is not certain: %s; the templates fit Istio %s and 1.%d was taken; set istio.version",
		what, release.Between(possible.From.String(), d.Version.String()), d.Version.Minor))
	return d, nil
}

func templateTexts(c *Config) []string {
	if len(c.Templates) == 0 {
		return []string{c.Template}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Templates)) {
		out = append(out, c.Templates[name])
	}
	return out
}

// usedSpans returns the versions of every function and field that a template uses. For a template that cannot be
// parsed it returns none: New reports what is wrong with it.
func usedSpans(text string, g Generation) []release.Span {
	t := template.New("")
	if g == GenerationA {
		t = t.Delims("[[", "]]")
	}
	tmpl, err := t.Funcs(everyFunction()).Parse(text)
	if err != nil {
		return nil
	}
	u := usageOf(tmpl)
	var out []release.Span
	for name := range u.functions {
		var of release.Spans
		for _, row := range functionTable {
			if row.Name == name {
				of = append(of, row.Spans...)
			}
		}
		_, inSprig := sprigNames()[name]
		switch {
		case inSprig && len(of) == 0:
			out = append(out, sprigSpans.Hull())
		case !inSprig && len(of) > 0:
			out = append(out, of.Hull())
		}
	}
	for name := range u.fields {
		if FieldVersions(name) == "" {
			// A template of the gateway controller, whose data has other fields.
			return nil
		}
	}
	for name := range u.fields {
		for _, row := range fieldTable {
			if row.Name == name {
				out = append(out, row.Hull())
			}
		}
	}
	return out
}

// commonSpan is the common part of two spans, or the first if they have none.
func commonSpan(a, b release.Span) release.Span {
	if common, ok := a.Narrow(b); ok {
		return common
	}
	return a
}
