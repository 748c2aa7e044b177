// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
)

// addUnquoted adds to fieldsOf the annotations of the pod whose values write YAML into what a template prints, because
// it prints them without quotes, each with the fields that it changes. It renders the template once more for each value
// that could, with the characters in it that mean something to YAML replaced, and compares what the texts hold: a value
// that is only a value changes no more than itself. Whether the template quotes it, which Istio's own do since August
// 2026, needs no list of annotations or versions.
func addUnquoted(
	fieldsOf map[string][]string, in *istio.Injector, t *istio.Template, data *istio.TemplateData, patch map[string]any,
) {
	inert := map[string]string{}
	for name, value := range data.ObjectMeta.Annotations {
		if text := withoutYAMLSyntax(value); text != value && !isJSON(value) && t.MayPrint(name) {
			inert[name] = text
		}
	}
	if len(inert) == 0 || len(fieldsWritten(in, t, data, patch, inert)) == 0 {
		return
	}
	for name, text := range inert {
		fields := fieldsWritten(in, t, data, patch, map[string]string{name: text})
		if len(fields) > 0 {
			fields = append(fields, fieldsOf[name]...)
			slices.Sort(fields)
			fieldsOf[name] = slices.Compact(fields)
		}
	}
}

// fieldsWritten returns the fields of a template's patch that are others where annotations have other values.
func fieldsWritten(
	in *istio.Injector, t *istio.Template, data *istio.TemplateData, patch map[string]any, values map[string]string,
) []string {
	other := *data
	other.ObjectMeta.Annotations = maps.Clone(data.ObjectMeta.Annotations)
	maps.Copy(other.ObjectMeta.Annotations, values)
	rendered, err := in.Render(t, &other)
	if err != nil {
		return nil
	}
	without, err := decodeOverlay(t.Name(), rendered.Bytes())
	in.Release(rendered)
	if err != nil || podmap.FitPatch(podmap.PodSchema(), without) != nil {
		return nil
	}
	var fields []string
	addedFields(&fields, "", patch, without)
	return fields
}

// withoutYAMLSyntax returns a text without the characters that can end a YAML scalar or change its type.
func withoutYAMLSyntax(text string) string {
	var out strings.Builder
	for i, c := range text {
		next := byte('\n')
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case strings.ContainsRune("\"'\\\n\r\u0085\u2028\u2029", c),
			c == ':' && strings.IndexByte(" \t\n\r", next) >= 0,
			c == '#' && i > 0 && strings.IndexByte(" \t\n\r", text[i-1]) >= 0,
			i == 0 && strings.ContainsRune("!&*{}[]|>%@`#", c) && text != "*",
			i == 0 && strings.ContainsRune("-?", c) && strings.IndexByte(" \t\n\r", next) >= 0:
			out.WriteByte('x')
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// isJSON reports whether a text is a JSON object or list, which templates read and do not print.
func isJSON(text string) bool {
	trimmed := strings.TrimSpace(text)
	return (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && json.Valid([]byte(trimmed))
}

// addedFields collects the paths at which a value has another shape than one: other keys, more or fewer elements, or a value of
// another kind. Texts may differ.
func addedFields(out *[]string, at string, value, other any) {
	switch v := value.(type) {
	case map[string]any:
		o, ok := other.(map[string]any)
		if !ok {
			*out = append(*out, at)
			return
		}
		before := len(*out)
		for _, key := range podmap.SortedKeys(v) {
			path := strings.TrimPrefix(at+"."+key, ".")
			if sub, there := o[key]; there {
				addedFields(out, path, v[key], sub)
			} else {
				*out = append(*out, path)
			}
		}
		if len(v) < len(o) && len(*out) == before {
			*out = append(*out, at)
		}
	case []any:
		o, ok := other.([]any)
		if !ok {
			*out = append(*out, at)
			return
		}
		for i := range max(len(v), len(o)) {
			path := fmt.Sprintf("%s[%d]", at, i)
			if i < len(v) && i < len(o) {
				addedFields(out, path, v[i], o[i])
			} else {
				*out = append(*out, path)
			}
		}
	default:
		if fmt.Sprintf("%T", value) != fmt.Sprintf("%T", other) {
			*out = append(*out, at)
		}
	}
}
