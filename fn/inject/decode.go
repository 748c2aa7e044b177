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

// decodeOverlay reads what a template printed. Nothing printed is nothing to merge. A key that is there twice counts as
// the webhook counts it: the last one.
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

// decodeLeniently reads text in which keys are there twice, which Decode refuses.
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
