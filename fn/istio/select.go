// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
)

// TemplatesAnnotationName is the annotation with which a pod chooses its templates.
const TemplatesAnnotationName = "inject.istio.io/templates"

// TemplateNames are the names of all templates in order.
func (in *Injector) TemplateNames() []string { return slices.Sorted(maps.Keys(in.templates)) }

// Select returns the templates for a pod with these annotations: those of inject.istio.io/templates, or the default
// ones, with aliases expanded once.
func (in *Injector) Select(annotations map[string]string) ([]*Template, error) {
	if in.detection.Generation != GenerationC {
		return []*Template{in.templates[defaultTemplate]}, nil
	}
	names := in.config.DefaultTemplates
	if list, ok := annotations[TemplatesAnnotationName]; ok {
		names = nil
		for name := range strings.SplitSeq(list, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	var out []*Template
	for _, name := range names {
		for _, expanded := range in.config.expandAlias(name) {
			t := in.templates[expanded]
			if t == nil {
				return nil, fmt.Errorf("selecting templates: %s is not among the templates of the injector's configuration, which are %s; prerig import takes a mesh's own into the policy",
					foreign.Quote(expanded), strings.Join(in.TemplateNames(), ", "))
			}
			if t.later != nil {
				var err error
				if t, err = t.later(); err != nil {
					return nil, err
				}
			}
			out = append(out, t)
		}
	}
	return out, nil
}

func (c *Config) expandAlias(name string) []string {
	if alias, ok := c.Aliases[name]; ok {
		return alias
	}
	return []string{name}
}
