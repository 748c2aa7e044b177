// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/istio/mesh"
)

// formatDuration formats a duration as Go does, such as 45s or 1m0s. Nil is 0s.
func formatDuration(d *mesh.Duration) string { return d.AsDuration().String() }

// durationOrSecond is formatDuration up to 1.13, where nil is 1s.
func durationOrSecond(d *mesh.Duration) string {
	if d == nil {
		return time.Second.String()
	}
	return formatDuration(d)
}

// isSet reports whether a map has a key, even with an empty value.
func isSet(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

func returnUnchanged(s string) string { return s }

// directoryWithSlash returns the path up to and including the last slash.
func directoryWithSlash(file string) string {
	dir, _ := path.Split(file)
	return dir
}

// containsNeedle has its arguments the other way round than sprig's contains in a pipeline, as Istio's has.
func containsNeedle(needle, haystack string) bool { return strings.Contains(haystack, needle) }

// stringOrDefault is valueOrDefault of 1.1.
func stringOrDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// valueOrDefault returns the value unless it is nil or an empty string.
func valueOrDefault(value, otherwise any) any {
	if value == nil || value == "" {
		return otherwise
	}
	return value
}

// toJSON encodes a map of strings; nil is an empty object.
func toJSON(m map[string]string) string {
	if m == nil {
		return "{}"
	}
	return marshalOrEmpty(m)
}

// fromJSON reads JSON. Like Istio's it returns the text {} for what cannot be read.
func fromJSON(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "{}"
	}
	return v
}

// structToJSON encodes any value; nil is an empty object.
func structToJSON(v any) string {
	if v == nil {
		return "{}"
	}
	return marshalOrEmpty(v)
}

func marshalOrEmpty(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(out)
}

// toYAML writes a value as a block of YAML with a line break at its end.
func toYAML(v any) string {
	out, err := yaml.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}

// indentFollowingLines puts spaces before every line but the first.
func indentFollowingLines(spaces int, text string) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", max(spaces, 0)))
}

// omitKeys returns a copy of a map of strings without some keys.
func omitKeys(m map[string]string, keys ...string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		if !slices.Contains(keys, k) {
			out[k] = v
		}
	}
	return out
}

// stringDict makes a map of strings from keys and values in turn; a key without a value gets an empty one.
func stringDict(pairs ...string) map[string]string {
	out := make(map[string]string, (len(pairs)+1)/2)
	for i := 0; i < len(pairs); i += 2 {
		if i+1 < len(pairs) {
			out[pairs[i]] = pairs[i+1]
		} else {
			out[pairs[i]] = ""
		}
	}
	return out
}

// toJSONMaps merges maps of strings, the later over the earlier, and writes them as JSON.
func toJSONMaps(all ...map[string]string) string { return toJSON(mergeMaps(all...)) }

// mergeMaps merges maps of strings, the later over the earlier, into a new one.
func mergeMaps(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// omitNil returns a value without its nil parts, at every depth, because a null in a rendered template deletes the
// field from the pod. A map or list that has only such parts is omitted too. A value without nil parts is returned
// unchanged.
func omitNil(v any) any {
	if !hasNil(v) {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if e = omitNil(e); e != nil {
				out[k] = e
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if e = omitNil(e); e != nil {
				out = append(out, e)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

func hasNil(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if hasNil(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNil)
	}
	return false
}

// appendMultusNetwork adds a network to the value of Multus' annotation, which is a comma-separated list or JSON,
// unless it already contains it. A network is NAME or NAMESPACE/NAME; in JSON the two are separate, and no
// namespace is the empty one (source: appendMultusNetwork in pkg/kube/inject/template.go).
func appendMultusNetwork(existing, network string) string {
	namespace, name, split := strings.Cut(network, "/")
	if !split {
		namespace, name = "", network
	}
	added := fmt.Sprintf(`{"name": "%s"}`, name)
	if namespace != "" {
		added = fmt.Sprintf(`{"name": "%s", "namespace": "%s"}`, name, namespace)
	}
	return appendNetwork(existing, network, added, func(has map[string]any) bool {
		of := has["namespace"]
		return has["name"] == name && (of == namespace || of == nil && namespace == "")
	})
}

// appendNamedMultusNetwork is appendMultusNetwork where JSON has NAMESPACE/NAME as the name, and the names alone are compared.
func appendNamedMultusNetwork(existing, network string) string {
	return appendNetwork(existing, network, fmt.Sprintf(`{"name": "%s"}`, network), func(has map[string]any) bool { return has["name"] == network })
}

// appendAnyMultusNetwork is appendNamedMultusNetwork without the check for an existing entry.
func appendAnyMultusNetwork(existing, network string) string {
	if end := strings.LastIndex(existing, "]"); end >= 0 {
		return existing[:end] + fmt.Sprintf(`, {"name": "%s"}`, network) + existing[end:]
	}
	if existing == "" {
		return network
	}
	return existing + ", " + network
}

// appendNetwork adds to a list with commas the network, and to JSON the text added, unless an entry is the same.
func appendNetwork(existing, network, added string, same func(map[string]any) bool) string {
	if existing == "" {
		return network
	}
	end := strings.LastIndex(existing, "]")
	if end < 0 {
		for name := range strings.SplitSeq(existing, ",") {
			if strings.TrimSpace(name) == network {
				return existing
			}
		}
		return existing + ", " + network
	}
	var networks []map[string]any
	if err := json.Unmarshal([]byte(existing), &networks); err != nil || slices.ContainsFunc(networks, same) {
		return existing
	}
	return existing[:end] + ", " + added + existing[end:]
}
