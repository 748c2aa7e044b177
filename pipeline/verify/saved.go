// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// ReadSaved adds the objects of a file that kubectl get -o yaml or -o json has written.
func (s *Snapshot) ReadSaved(name string, data []byte) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		var obj map[string]any
		if json.Unmarshal(data, &obj) == nil { // several documents, and flow YAML, go the other way
			s.addSaved(obj, "", "")
			return nil
		}
	}
	file, err := manifest.Parse(name, data)
	if err != nil {
		return err
	}
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		obj, err := doc.Object()
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		s.addSaved(obj, "", "")
	}
	return nil
}

// addSaved adds an object, or those of a list, whose items may omit what the list specifies for them.
func (s *Snapshot) addSaved(obj map[string]any, apiVersion, kind string) {
	own, _ := obj["kind"].(string)
	if items, ok := obj["items"].([]any); ok && strings.HasSuffix(own, "List") {
		element := strings.TrimSuffix(own, "List")
		if element != "" {
			s.Read(element)
		}
		for _, item := range items {
			if one, ok := item.(map[string]any); ok {
				s.addSaved(one, podmap.TextAt(obj, "apiVersion"), element)
			}
		}
		return
	}
	if own == "" && kind != "" {
		obj["apiVersion"], obj["kind"] = apiVersion, kind
	}
	if ref := refOf(obj); slices.Contains(Kinds, ref.Kind) || !ref.builtIn() && podmap.ValueAt(obj, "spec") != nil {
		s.Add(obj)
	}
}
