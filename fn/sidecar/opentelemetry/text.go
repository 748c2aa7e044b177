// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// configText writes the configuration with its sections in the operator's order, and the keys below them sorted.
func configText(config map[string]any) (string, error) {
	top := map[string][]string{"": {"receivers", "exporters", "processors", "connectors", "extensions", "service"},
		"service": {"extensions", "telemetry", "pipelines"}}
	root, err := orderedNode(config, "", top)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(root), encoder.Close()); err != nil {
		return "", fmt.Errorf("writing the configuration: %w", err)
	}
	return out.String(), nil
}

// orderedNode returns a map as a YAML node with its keys in the order defined for its path.
func orderedNode(m map[string]any, at string, order map[string][]string) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range order[at] {
		value, ok := m[key]
		if !ok {
			continue
		}
		var child yaml.Node
		if inner, isMap := value.(map[string]any); isMap && order[key] != nil {
			ordered, err := orderedNode(inner, key, order)
			if err != nil {
				return nil, err
			}
			child = *ordered
		} else {
			if err := child.Encode(asJSONNumbers(value)); err != nil {
				return nil, fmt.Errorf("writing %s: %w", key, err)
			}
			quoteTexts(&child)
		}
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &child)
	}
	return node, nil
}

// asJSONNumbers returns the value with its numbers as the operator has them, which reads them from JSON: those of a
// million and more are written with an exponent.
func asJSONNumbers(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, e := range value {
			out[key] = asJSONNumbers(e)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, e := range value {
			out[i] = asJSONNumbers(e)
		}
		return out
	}
	return value
}

// quoteTexts puts texts that need quotes into double ones.
func quoteTexts(node *yaml.Node) {
	if node.Style == yaml.SingleQuotedStyle {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quoteTexts(child)
	}
}

// wholeNumber returns a number without a fraction, as decoded by either JSON or YAML decoders.
func wholeNumber(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case float64:
		return int64(value), value == float64(int64(value))
	}
	return 0, false
}
