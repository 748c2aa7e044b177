// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"text/template"
	"text/template/parse"

	"github.com/prerig/prerig/fn/gotemplate"
)

// maxNested bounds how deep render can call itself.
const maxNested = 16

// bindRender returns the template with the function render, which renders its argument as a template with the same
// data. The values of Istio 1.2 to 1.13 hold such texts (podDNSSearchNamespaces). A text that fails is an error
// here; the webhook treats it as empty. All renders share the step budget.
func (l *language) bindRender(t *Template, data *TemplateData, spent *int) (*template.Template, error) {
	outer, err := t.tmpl.Clone()
	if err != nil {
		return nil, err
	}
	depth := 0
	render := func(text string) (string, error) {
		if depth++; depth > maxNested {
			return "", fmt.Errorf("render calls itself more than %d times deep", maxNested)
		}
		defer func() { depth-- }()
		inUse := treesOf(outer)
		inner, err := outer.New("render").Parse(text)
		if err != nil {
			return "", fmt.Errorf("reading %q: %w", text, parseError("render", err))
		}
		u := usageOf(inner)
		if err := u.checkFunctions(l); err != nil {
			return "", fmt.Errorf("reading %q: %w", text, err)
		}
		u.failAbsent(l, inner, inUse)
		marks := maps.Clone(t.marks)
		marks.Count(inner)
		l.checkPrints(inner, "render")
		out := &gotemplate.Output{Max: maxRendered, Marks: marks, Spent: spent}
		if err := inner.Execute(out, data); err != nil {
			return "", fmt.Errorf("rendering %q: %w", text, err)
		}
		return out.String(), nil
	}
	return outer.Funcs(template.FuncMap{"render": render}), nil
}

// treesOf are the trees of a template and the templates that it defines.
func treesOf(t *template.Template) []*parse.Tree {
	var out []*parse.Tree
	for _, sub := range t.Templates() {
		out = append(out, sub.Tree)
	}
	return out
}
