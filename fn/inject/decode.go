// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// decodeOverlay decodes a template's output. Empty output merges as a no-op. For duplicate keys the last one wins,
// as in the webhook.
func decodeOverlay(template string, text []byte) (map[string]any, error) {
	v, err := manifest.Decode(text)
	if err != nil {
		if v, err = decodeLeniently(text, err); err != nil {
			return nil, &gotemplate.Error{Template: template, Err: fmt.Errorf("what it prints is not YAML: %w", err)}
		}
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	default:
		return nil, &gotemplate.Error{Template: template, Err: fmt.Errorf("it has to print a map with metadata and spec, and prints %s", podmap.Describe(v))}
	}
}

// decodeLeniently decodes text with duplicate keys, which Decode rejects.
func decodeLeniently(text []byte, strict error) (any, error) {
	js, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, strict
	}
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(js, &v); err != nil {
		return nil, strict
	}
	return v, nil
}
