// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
)

// The injection policies of an injector configuration.
const (
	PolicyEnabled  = "enabled"
	PolicyDisabled = "disabled"
)

// Config is data.config of the ConfigMap istio-sidecar-injector (source: type Config in pkg/kube/inject/inject.go). Keys
// that no version reads are ignored, as the injector ignores them.
type Config struct {
	// Policy is enabled or disabled: the default for pods without a setting of their own.
	Policy string `json:"policy"`
	// DefaultTemplates are the templates of a pod that names none. Empty means sidecar.
	DefaultTemplates []string `json:"defaultTemplates"`
	// Templates are the templates of Istio 1.9 and later by name.
	Templates map[string]string `json:"templates"`
	// Aliases are names for lists of templates. They expand once.
	Aliases map[string][]string `json:"aliases"`
	// Template is the only template of Istio up to 1.8. Later versions write a tripwire to this field, which is
	// ignored.
	Template string `json:"template"`
	// NeverInjectSelector and AlwaysInjectSelector decide for pods without a setting of their own; the first wins.
	NeverInjectSelector  []metav1.LabelSelector `json:"neverInjectSelector"`
	AlwaysInjectSelector []metav1.LabelSelector `json:"alwaysInjectSelector"`
	// InjectedAnnotations are set on every injected pod, replacing existing values.
	InjectedAnnotations map[string]string `json:"injectedAnnotations"`
}

// defaultTemplate is the template of pods and configurations that name none.
const defaultTemplate = "sidecar"

// ParseConfig parses data.config. It fails if the text is not YAML, has neither templates nor template, or has a
// policy other than enabled and disabled, with which the injector would silently inject no pods.
func ParseConfig(text string) (*Config, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("reading the injector configuration: it is empty; give data.config of the ConfigMap istio-sidecar-injector")
	}
	c := &Config{}
	if err := c.decodeInjectorYAML(text); err != nil {
		return nil, fmt.Errorf("reading the injector configuration (data.config): %w", err)
	}
	if len(c.Templates) == 0 && c.Template == "" {
		return nil, fmt.Errorf("reading the injector configuration: it has neither templates nor template; is it data.config of the ConfigMap istio-sidecar-injector?")
	}
	if c.Policy != PolicyEnabled && c.Policy != PolicyDisabled {
		return nil, fmt.Errorf("reading the injector configuration: policy is %q; it must be %s or %s, else the injector injects nothing",
			c.Policy, PolicyEnabled, PolicyDisabled)
	}
	if len(c.DefaultTemplates) == 0 {
		c.DefaultTemplates = []string{defaultTemplate}
	}
	return c, nil
}

// decodeInjectorYAML decodes YAML into a configuration as the injector does, which accepts duplicate keys.
func (c *Config) decodeInjectorYAML(text string) error {
	v, err := manifest.Decode([]byte(text))
	if err != nil {
		return yaml.Unmarshal([]byte(text), c)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return errors.New("it is not a map")
	}
	// The templates are most of the text and need no way through JSON.
	templates, ok := m["templates"].(map[string]any)
	if !ok && m["templates"] != nil {
		return errors.New("templates is not a map")
	}
	delete(m, "templates")
	js, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(js, c); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		text, ok := templates[name].(string)
		if !ok && templates[name] != nil {
			return fmt.Errorf("templates[%s] is not text", name)
		}
		if c.Templates == nil {
			c.Templates = map[string]string{}
		}
		c.Templates[name] = text
	}
	return nil
}

// Generation returns the generation according to the shape of the configuration: templates is C; one template is A
// if it has Istio 1.0's delimiters and no values exist, and B otherwise.
func (c *Config) Generation(hasValues bool) Generation {
	switch {
	case len(c.Templates) > 0:
		return GenerationC
	case !hasValues && strings.Contains(c.Template, "[["):
		return GenerationA
	default:
		return GenerationB
	}
}

// parseSelectors compiles label selectors. Invalid and empty selectors match no pods, as in the injector; they are
// returned as warnings.
func parseSelectors(field string, in []metav1.LabelSelector) (out []labels.Selector, warnings []string) {
	for i := range in {
		s, err := metav1.LabelSelectorAsSelector(&in[i])
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s[%d] of the injector configuration is not a valid selector and matches nothing: %v", field, i, err))
			continue
		}
		if !s.Empty() {
			out = append(out, s)
		}
	}
	return out, warnings
}
