// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	kjson "sigs.k8s.io/json"
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
			return fmt.Errorf("reading injector.overrides.global.proxy.autoInject: it is %v; it must be %s or %s", auto, PolicyEnabled, PolicyDisabled)
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
		if err := readOverride(over.valueAtPath(hookValues, field.name), field.to); err != nil {
			return fmt.Errorf("reading injector.overrides.%s.%s: %w", hookValues, field.name, err)
		}
	}
	c.Templates, c.InjectedAnnotations = mergedText(c.Templates, templates), mergedText(c.InjectedAnnotations, annotations)
	if len(c.DefaultTemplates) == 0 {
		c.DefaultTemplates = []string{defaultTemplate}
	}
	return nil
}

// readOverride decodes a value, if present, into what to points to, replacing it. A field unknown to the Go type is
// an error.
func readOverride(value, to any) error {
	if value == nil {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	reflect.ValueOf(to).Elem().SetZero() // otherwise existing elements would shine through
	unknown, err := kjson.UnmarshalStrict(text, to)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	return err
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
