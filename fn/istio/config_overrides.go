// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// hookValues is the part of the values that Istio's chart writes into the configuration instead of leaving it to templates.
const hookValues = "sidecarInjectorWebhook"

// applyChartOverrides changes a configuration as if the chart had been rendered with overrides (source: the template
// istiod-injector-configmap.yaml of the chart istio-discovery): templates are added to the existing ones, the
// default templates and the selectors replace the existing ones, and annotations are merged. Aliases have no value.
func (c *Config) applyChartOverrides(over Values) error {
	if auto := over.valueAtPath("global", "proxy", "autoInject"); auto != nil {
		policy, _ := auto.(string)
		if policy != PolicyEnabled && policy != PolicyDisabled {
			return overrideError([]string{"global", "proxy", "autoInject"}, "it is %v; it must be %s or %s", auto, PolicyEnabled, PolicyDisabled)
		}
		c.Policy = policy
	}
	var templates, annotations map[string]string
	for _, field := range []struct {
		name string
		to   any
	}{
		{"templates", &templates}, {"injectedAnnotations", &annotations}, {"defaultTemplates", &c.DefaultTemplates},
		{"alwaysInjectSelector", &c.AlwaysInjectSelector}, {"neverInjectSelector", &c.NeverInjectSelector},
	} {
		if err := readOverride([]string{hookValues, field.name}, over.valueAtPath(hookValues, field.name), field.to); err != nil {
			return err
		}
	}
	c.Templates, c.InjectedAnnotations = mergedText(c.Templates, templates), mergedText(c.InjectedAnnotations, annotations)
	if len(c.DefaultTemplates) == 0 {
		c.DefaultTemplates = []string{defaultTemplate}
	}
	if name, known := c.missingTemplate(); name != "" && over.valueAtPath(hookValues, "defaultTemplates") != nil {
		return overrideError([]string{hookValues, "defaultTemplates"}, "%s is not a template%s; there are %s", name, strict.DidYouMean(name, known), strings.Join(known, ", "))
	}
	return nil
}

// missingTemplate returns the first default template that does not exist, and the names of those that do.
func (c *Config) missingTemplate() (name string, known []string) {
	known = slices.Sorted(maps.Keys(c.Templates))
	for _, name := range c.DefaultTemplates {
		for _, expanded := range c.expandAlias(name) {
			if _, there := c.Templates[expanded]; !there {
				return expanded, known
			}
		}
	}
	return "", known
}

// readOverride decodes a value, if present, into what to points to, replacing it. A field unknown to the Go type is
// an error.
func readOverride(path []string, value, to any) error {
	if value == nil {
		return nil
	}
	var ps strict.Problems
	strict.Decoder{Optional: true, NullIsUnset: true}.Decode(nil, asDocument(value), reflect.New(reflect.TypeOf(to).Elem()).Interface(), &ps)
	if len(ps.List) > 0 {
		first := ps.List[0]
		for _, e := range first.Path {
			path = append(path, fmt.Sprint(e))
		}
		return overrideError(path, "%s", first.Message)
	}
	text, err := json.Marshal(value)
	if err == nil {
		reflect.ValueOf(to).Elem().SetZero() // otherwise existing elements would shine through
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		return overrideError(path, "%s", err)
	}
	return nil
}

func mergedText(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}
