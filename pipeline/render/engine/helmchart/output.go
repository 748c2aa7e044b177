// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// settleOutput resolves what Helm and Argo CD accept in the output of a chart, and files cannot hold: a key that a mapping
// has twice, and a hook with the name of another object. Users cannot mend the charts of others, so each is a warning.
func (c *chartRender) settleOutput(manifests []Manifest) []Manifest {
	for i := range manifests {
		manifests[i].YAML = c.takeLastKeys(manifests[i])
	}
	if !slices.ContainsFunc(manifests, func(one Manifest) bool { return one.Hook }) {
		return manifests
	}
	owners := map[result.ResourceRef]Manifest{}
	for _, one := range manifests {
		if key, ok := c.identify(one.YAML); ok && !one.Hook {
			owners[key] = one
		}
	}
	var out []Manifest
	for _, one := range manifests {
		key, ok := c.identify(one.YAML)
		owner, taken := owners[key]
		if !one.Hook || !ok || !taken {
			owners[key] = one
			out = append(out, one)
			continue
		}
		kind := "template"
		if owner.Hook {
			kind = "hook"
		}
		c.warn("the hook %s is left out: the %s %s makes %s, too, and only one object of a name can be published; %s: Drop leaves out every hook",
			c.sourcePath(one.Template), kind, c.sourcePath(owner.Template), key.String(), c.options.nameField("hooks"))
	}
	return out
}

// takeLastKeys returns the text of a manifest without the keys that later ones override.
func (c *chartRender) takeLastKeys(one Manifest) string {
	file, err := manifest.Parse("", []byte(one.YAML))
	if err != nil {
		return one.YAML // the caller reports it
	}
	var text strings.Builder
	for _, doc := range file.Docs {
		next, repeated := doc.WithLastKeys()
		text.WriteString(next.Text())
		for _, key := range repeated {
			object, _ := c.identify(next.Text())
			c.warn("%s: %s: the key %s is there more than once in the same mapping; the last one, on line %d of the rendered object, counts, as in Helm and Argo CD",
				c.sourcePath(one.Template), object.String(), key.Path, key.Line)
		}
	}
	return text.String()
}

// identify returns the object of a text; ok is false if it has no name of its own.
func (c *chartRender) identify(text string) (object result.ResourceRef, ok bool) {
	value, err := manifest.Decode([]byte(text))
	top, isMap := value.(map[string]any)
	if err != nil || !isMap {
		return object, false
	}
	object.APIVersion, _ = top["apiVersion"].(string)
	object.Kind, _ = top["kind"].(string)
	metadata, _ := top["metadata"].(map[string]any)
	object.Name, _ = metadata["name"].(string)
	if object.Namespace, _ = metadata["namespace"].(string); object.Namespace == "" {
		object.Namespace = c.spec.Namespace
	}
	return object, object.Name != ""
}

// sourcePath names a template as the source does. Helm's own names begin with the chart's name.
func (c *chartRender) sourcePath(template string) string {
	if below, ok := strings.CutPrefix(template, c.name+"/"); ok && c.directory {
		return strings.TrimSuffix(c.spec.Chart, "/") + "/" + below
	}
	return template
}

func (c *chartRender) warn(format string, args ...any) {
	if c.options.Warn != nil {
		c.options.Warn(fmt.Sprintf("the chart %s: ", c.spec.Chart) + fmt.Sprintf(format, args...))
	}
}
