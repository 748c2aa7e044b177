// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"maps"
	"slices"
	"sync"
)

// parseTemplates parses the configuration's templates. Templates that mix what no version of Istio has together are a
// vendor's, and may.
func (in *Injector) parseTemplates() error {
	in.language = languageOf(in.profile, in.detection.Generation, in.boundFunctions())
	in.language.lenient = in.detection.Vendor != ""
	err := in.parseAll()
	if !in.language.lenient && (err != nil || in.absentByDefault()) && mixesVersions(in.config, in.detection.Generation) {
		in.detection.Vendor = "a vendor"
		in.language.lenient = true
		err = in.parseAll()
	}
	if err == nil && in.detection.Vendor != "" {
		in.warnings = append(in.warnings, in.detection.vendorWarning(in.templates))
	}
	return err
}

// parseAll parses the templates, at most one per processor at a time.
func (in *Injector) parseAll() error {
	texts := in.config.Templates
	if in.detection.Generation != GenerationC {
		texts = map[string]string{defaultTemplate: in.config.Template}
	}
	names := slices.Sorted(maps.Keys(texts))
	parsed, errs := make([]*Template, len(names)), make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		if in.isParsedLazily(name) {
			later := sync.OnceValues(func() (*Template, error) { return in.language.parse(name, texts[name]) })
			parsed[i] = &Template{name: name, later: later}
			continue
		}
		group.Go(func() { parsed[i], errs[i] = in.language.parse(name, texts[name]) })
	}
	group.Wait()
	in.templates = map[string]*Template{}
	for i, name := range names {
		if errs[i] != nil {
			return errs[i]
		}
		in.templates[name] = parsed[i]
	}
	return nil
}

// isParsedLazily reports whether a template is parsed when a pod asks for it: its errors need not be reported, and
// neither overrides nor most pods need it.
func (in *Injector) isParsedLazily(name string) bool {
	return in.opts.Known && len(in.opts.Overrides) == 0 && in.detection.Generation == GenerationC &&
		!slices.ContainsFunc(in.config.DefaultTemplates, func(asked string) bool { return slices.Contains(in.expandAlias(asked), name) })
}

// absentByDefault reports whether a template that pods get without asking reads a field that the version does not have.
func (in *Injector) absentByDefault() bool {
	names := in.config.DefaultTemplates
	if in.detection.Generation != GenerationC {
		names = []string{defaultTemplate}
	}
	return slices.ContainsFunc(names, func(name string) bool { return in.templates[name] != nil && in.templates[name].absent })
}
