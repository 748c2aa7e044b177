// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Template is one parsed template of an injector configuration.
type Template struct {
	name string
	tmpl *template.Template
	// marks count the steps.
	marks gotemplate.Marks
	// mutates reports whether the template calls a function in a way that may modify the values.
	mutates bool
	// nests reports whether the template calls render.
	nests bool
	// absent reports whether the template somewhere reads a field that the version does not have, and fails at that
	// point. That is normal for templates of the gateway controller, which it renders with other data.
	absent bool
	// readsGenerateName and readsOwners report whether the text names these fields of the pod's metadata.
	readsGenerateName, readsOwners bool
	// text is the parsed text; readsAnnotations reports whether it reads more of the annotations than it names.
	text             string
	readsAnnotations bool
	// builtIn reports whether it is of the built-in policy, unchanged.
	builtIn bool
	// foreign are the functions and fields that other versions than the injector's have, as text; a vendor's templates have such.
	foreign []string
	// later, where it is set, parses the template, of which only the name is known.
	later func() (*Template, error)
}

// Name is the template's name in the configuration.
func (t *Template) Name() string { return t.name }

// Text is the template's text in the configuration.
func (t *Template) Text() string { return t.text }

// ReadsController reports whether the template's text names the fields of a pod's metadata that its controller sets: the beginning
// of its name, and the references to its owners.
func (t *Template) ReadsController() (generateName, owners bool) {
	return t.readsGenerateName, t.readsOwners
}

// builtInPrefix begins all names of annotations that the templates of the built-in policy put together. A test reads the templates for it.
const builtInPrefix = "sidecar.istio.io/"

// MayPrint reports whether what the template prints may have the value of a pod's annotation in it.
func (t *Template) MayPrint(annotation string) bool {
	if t.builtIn {
		return strings.HasPrefix(annotation, builtInPrefix) || strings.Contains(t.text, annotation)
	}
	return t.readsAnnotations || strings.Contains(t.text, annotation)
}

// readsAnnotations reports whether a template reads annotations that its text does not name. Asking for one by its name, and
// the attributes of OpenTelemetry, whose values are escaped, do not count.
func readsAnnotations(text string) bool {
	all := strings.Count(text, ".Annotations")
	for _, named := range []string{"isset .ObjectMeta.Annotations", "isset $.ObjectMeta.Annotations", "index .ObjectMeta.Annotations", "index $.ObjectMeta.Annotations",
		"otelResourceAttributes .MeshConfig .ObjectMeta.Annotations"} {
		all -= strings.Count(text, named)
	}
	return all > 0
}

// maxRendered bounds what a template can print, in bytes. Istio's own print about 10 kB.
const maxRendered = 16 << 20

// Rendered is what a template printed. Release it when it is no longer read.
type Rendered struct{ out *gotemplate.Output }

// Bytes is the text. It must not be changed, and not read after Release.
func (r Rendered) Bytes() []byte { return r.out.Bytes() }

// language is what the templates of one injector are parsed with.
type language struct {
	profile    *Profile
	generation Generation
	// functions are those of the version.
	functions template.FuncMap
	// builtIn reports whether the templates are those of the built-in policy, unchanged.
	builtIn bool
	// lenient reports whether a vendor's templates may use features of other versions; each use is recorded in
	// foreign.
	lenient bool
	// base has every function of every version, so that parsing finds all of them and check can name the versions.
	base *template.Template
}

// languageOf makes the language of a version. bound are the functions that need the injector.
func languageOf(p *Profile, g Generation, bound template.FuncMap) *language {
	l := &language{profile: p, generation: g, functions: functionsOf(p)}
	every := everyFunction()
	maps.Copy(every, l.functions)
	for name, fn := range bound {
		every[name] = fn
	}
	every[printFunction] = printCheckOf(p).checkPrintingCall
	l.base = template.New("").Funcs(every)
	return l
}

// everyFunction are the functions of all versions.
func everyFunction() template.FuncMap {
	m := maps.Clone(sprigNames())
	for _, row := range functionTable {
		m[row.Name] = row.fn
	}
	return m
}

// parse parses one template.
func (l *language) parse(name, text string) (*Template, error) {
	t, err := l.base.Clone()
	if err != nil {
		return nil, fmt.Errorf("reading template %q: %w", name, err)
	}
	t = t.New(name)
	if l.generation == GenerationA {
		t = t.Delims("[[", "]]")
	}
	tmpl, err := t.Parse(text)
	if err != nil {
		return nil, parseError(name, err)
	}
	u := usageOf(tmpl)
	if err := u.checkFunctions(l); err != nil {
		return nil, err
	}
	out := &Template{name: name, text: text, builtIn: l.builtIn, readsAnnotations: readsAnnotations(text), readsGenerateName: strings.Contains(text, ".GenerateName"), readsOwners: strings.Contains(text, ".OwnerReferences"),
		tmpl: tmpl, marks: gotemplate.Marks{}, absent: u.failAbsent(l, tmpl, nil)}
	if l.lenient && !out.absent {
		out.foreign = u.unsupportedNames(l)
	}
	out.marks.Count(tmpl)
	l.checkPrints(tmpl, name)
	_, out.nests = u.functions["render"]
	out.mutates = variablesOf(tmpl).mutatesShared()
	return out, nil
}

// isNearSpan reports whether a version, or the one before or after it, is in one of the spans. Features of a minor
// version are often in the last patches of the previous one too, and a template that uses them works with those.
func isNearSpan(spans release.Spans, r release.Release) bool {
	return slices.ContainsFunc(spans, func(s release.Span) bool {
		return s.From.Minor-1 <= r.Minor && r.Minor <= s.To.Minor+1
	})
}

var (
	undefinedFunction = lazyregexp.New(`^template: (.*):(\d+): function "(.+)" not defined$`)
	parseLocation     = lazyregexp.New(`^template: (.*?):(\d+)(?::\d+)?: (?s:(.*))$`)
)

// parseError describes why a template cannot be parsed.
func parseError(name string, err error) error {
	text := err.Error()
	if m := undefinedFunction.FindStringSubmatch(text); m != nil {
		return templateError(name, m[2], "no version of Istio from 1.%d to 1.%d has the function %q", OldestMinor, NewestMinor, m[3])
	}
	if m := parseLocation.FindStringSubmatch(text); m != nil {
		return templateError(name, m[2], "%s", m[3])
	}
	return fmt.Errorf("reading template %q: %w", name, err)
}

// templateError is an error in a line of a template of the configuration.
func templateError(name, line, format string, args ...any) error {
	err := fmt.Errorf("reading template %q, line %s: %s", name, line, fmt.Sprintf(format, args...))
	number, _ := strconv.Atoi(line)
	return &strict.FieldError{Path: []any{"injector", "config", "templates", name}, Line: number, Err: err}
}
