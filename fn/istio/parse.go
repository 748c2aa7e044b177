// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// parseTemplates parses the configuration's templates. Templates that mix what no version of Istio has together are a
// vendor's, and may.
func (in *Injector) parseTemplates() error {
	c, g := in.config, in.detection.Generation
	in.language = languageOf(in.profile, g, in.boundFunctions())
	in.language.lenient = in.detection.Vendor != ""
	in.language.builtIn = in.opts.Known && len(in.opts.Overrides) == 0
	texts, defaults := c.Templates, c.DefaultTemplates
	if g != GenerationC {
		texts, defaults = map[string]string{defaultTemplate: c.Template}, []string{defaultTemplate}
	}
	// Errors of known templates need not be reported, and neither overrides nor most pods need those that pods only get
	// on request.
	mayWait := in.language.builtIn && g == GenerationC
	isLazy := func(name string) bool {
		return mayWait && !slices.ContainsFunc(defaults, func(asked string) bool { return slices.Contains(c.expandAlias(asked), name) })
	}
	// A template that pods get without asking may read a field that the version does not have.
	isAbsent := func(name string) bool { return in.templates[name] != nil && in.templates[name].absent }
	var err error
	in.templates, err = in.language.parseAll(texts, isLazy)
	if !in.language.lenient && (err != nil || slices.ContainsFunc(defaults, isAbsent)) && mixesVersions(c, g) {
		in.detection.Vendor = "a vendor"
		in.language.lenient = true
		in.templates, err = in.language.parseAll(texts, isLazy)
	}
	if err == nil && in.detection.Vendor != "" {
		in.warnings = append(in.warnings, in.detection.vendorWarning(in.templates))
	}
	return err
}

// parseAll parses templates, at most one per processor at a time. Lazy ones are parsed when a pod asks for them.
func (l *language) parseAll(texts map[string]string, isLazy func(name string) bool) (map[string]*Template, error) {
	names := slices.Sorted(maps.Keys(texts))
	parsed, errs := make([]*Template, len(names)), make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		if isLazy(name) {
			later := sync.OnceValues(func() (*Template, error) { return l.parse(name, texts[name]) })
			parsed[i] = &Template{name: name, later: later}
			continue
		}
		group.Go(func() { parsed[i], errs[i] = l.parse(name, texts[name]) })
	}
	group.Wait()
	templates := map[string]*Template{}
	for i, name := range names {
		if errs[i] != nil {
			return templates, errs[i]
		}
		templates[name] = parsed[i]
	}
	return templates, nil
}

var lineOfError = lazyregexp.New(`^line (\d+): (?s:(.*))$`)

// atSyntaxError returns the error about a text that is a field of the policy. If the text is no YAML, the error has the line of the mistake.
func atSyntaxError(text, doing string, err error, path ...any) error {
	_, syntax := strict.ReadOne([]byte(text), len(text))
	if syntax == nil {
		if !strings.HasPrefix(err.Error(), "reading ") {
			err = fmt.Errorf("%s: %w", doing, err)
		}
		return strict.AtField(err, path...)
	}
	line := 0
	if m := lineOfError.FindStringSubmatch(syntax.Error()); m != nil {
		line, _ = strconv.Atoi(m[1]) // it is one
		syntax = errors.New(m[2])
	}
	return &strict.FieldError{Path: path, Line: line, Err: fmt.Errorf("%s: line %d of the text: %w", doing, line, syntax)}
}
