// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// Detection says which version was taken and why.
type Detection struct {
	Version    Version
	Generation Generation
	// From says where the version comes from, as text: `values.global.tag "1.24.6"`.
	From string
	// Warnings say what is uncertain.
	Warnings []string
}

// imageTag finds Istio's proxy images in the text of a template.
var imageTag = regexp.MustCompile(`/(?:proxyv2|proxy_init|proxy_debug|proxy|proxytproxy|istio-proxy)[^:"'\s]*:([A-Za-z0-9_][A-Za-z0-9_.-]*)`)

// detect takes the version from the first of: what the caller says, the values' tag, the tag in the proxy image's name, the
// functions and fields that the templates use.
func detect(explicit string, c *Config, v Values, hasValues bool) (Detection, error) {
	d := Detection{Generation: c.Generation(hasValues)}
	if explicit != "" {
		version, ok := ParseVersion(explicit)
		if !ok {
			return d, fmt.Errorf("reading the Istio version %q: want one such as 1.31 or 1.24.6", explicit)
		}
		d.Version, d.From = version, "the policy"
		return d, d.agree()
	}
	if tag := v.String("global", "tag"); tag != "" {
		if version, ok := ParseVersion(tag); ok {
			d.Version, d.From = version, fmt.Sprintf("values.global.tag %q", tag)
			return d, d.agree()
		}
	}
	for _, path := range [][]string{{"global", "proxy", "image"}, {"global", "proxy_init", "image"}} {
		image := v.String(path...)
		if i := strings.LastIndex(image, ":"); i >= 0 {
			if version, ok := ParseVersion(image[i+1:]); ok {
				d.Version, d.From = version, fmt.Sprintf("values.%s %q", strings.Join(path, "."), image)
				return d, d.agree()
			}
		}
	}
	for _, m := range imageTag.FindAllStringSubmatch(c.Template, -1) {
		if version, ok := ParseVersion(m[1]); ok {
			d.Version, d.From = version, fmt.Sprintf("the image %q in the template", strings.TrimPrefix(m[0], "/"))
			return d, d.agree()
		}
	}
	return d.fromUsage(c, v)
}

// agree checks that the version has configurations of this shape.
func (d *Detection) agree() error {
	if d.Version.Minor > NewestMinor {
		d.Warnings = append(d.Warnings, fmt.Sprintf("Istio %s is newer than 1.%d, the newest whose injector is known: it is taken to behave the same",
			d.Version, NewestMinor))
	}
	p, _ := ProfileOf(d.Version.Minor)
	got, want := d.Generation, p.Generation()
	if (got == GenerationC) == (want == GenerationC) {
		return nil
	}
	shape := map[Generation]string{
		GenerationA: "one template with [[ ]]", GenerationB: "one template", GenerationC: "a map of templates",
	}
	return fmt.Errorf("reading the injector configuration: it has %s, as Istio %s has it, but the version is %s (from %s); give the version that it belongs to",
		shape[got], generationSpan(got), d.Version, d.From)
}

func generationSpan(g Generation) Span {
	switch g {
	case GenerationA:
		return Span{0, 1}
	case GenerationB:
		return Span{2, 8}
	default:
		return Span{9, newest}
	}
}

// hintTable lists texts that only the stock templates of some versions have.
var hintTable = []struct {
	Text string
	Span
}{
	{"ENABLE_NATIVE_SIDECARS", Span{19, 26}},
	{"PILOT_ENABLE_INBOUND_PASSTHROUGH", Span{10, 21}},
	{"ENABLE_LEGACY_FSGROUP_INJECTION", Span{9, 18}},
	{"/app-lifecycle", Span{25, newest}},
	{"sidecar.istio.io/nativeSidecar", Span{24, newest}},
	{"istio-locality", Span{9, newest}},
	{"pilot-agent wait", Span{7, newest}},
	{"rewriteAppHTTPProbe:", Span{1, 8}},
}

// fromUsage narrows the version down by what the templates use, and takes the newest that is possible.
func (d Detection) fromUsage(c *Config, v Values) (Detection, error) {
	possible := generationSpan(d.Generation)
	texts := templateTexts(c)
	for _, text := range texts {
		for _, span := range usedSpans(text, d.Generation) {
			possible = narrow(possible, span)
		}
		for _, hint := range hintTable {
			if strings.Contains(text, hint.Text) {
				possible = narrow(possible, hint.Span)
			}
		}
	}
	d.Version = Version{Minor: min(possible.To, NewestMinor), Patch: -1}
	d.From = "the functions and fields that the templates use"
	what := "there is no tag in the values and no proxy image with one"
	if tag := v.String("global", "tag"); tag != "" {
		what = fmt.Sprintf("values.global.tag %q is not a version", tag)
	}
	d.Warnings = append(d.Warnings, fmt.Sprintf("the Istio version is not certain: %s; the templates fit Istio %s and 1.%d was taken; set istio.version",
		what, Span{possible.From, min(possible.To, NewestMinor)}, d.Version.Minor))
	return d, nil
}

func templateTexts(c *Config) []string {
	if len(c.Templates) == 0 {
		return []string{c.Template}
	}
	var out []string
	for _, name := range sortedKeys(c.Templates) {
		out = append(out, c.Templates[name])
	}
	return out
}

// usedSpans are the versions of every function and field that a template uses. A template that cannot be parsed gives none:
// New says what is wrong with it.
func usedSpans(text string, g Generation) []Span {
	t := template.New("")
	if g == GenerationA {
		t = t.Delims("[[", "]]")
	}
	tmpl, err := t.Funcs(everyFunction()).Parse(text)
	if err != nil {
		return nil
	}
	u := usageOf(tmpl)
	var out []Span
	for name := range u.functions {
		var of []Span
		for _, row := range functionTable {
			if row.Name == name {
				of = append(of, row.Span)
			}
		}
		_, inSprig := sprigNames()[name]
		switch {
		case inSprig && len(of) == 0:
			out = append(out, sprigSpan)
		case !inSprig && len(of) > 0:
			from := slices.MinFunc(of, func(a, b Span) int { return a.From - b.From }).From
			to := slices.MaxFunc(of, func(a, b Span) int { return a.To - b.To }).To
			out = append(out, Span{from, to})
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
				out = append(out, row.Span)
			}
		}
	}
	return out
}

// narrow is the common part of two spans, or the first if they have none.
func narrow(a, b Span) Span {
	n := Span{max(a.From, b.From), min(a.To, b.To)}
	if n.From > n.To {
		return a
	}
	return n
}
