// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"reflect"
	"sync"
)

// knownYAML remembers the YAML of maps that never change: the injector's values and the maps in them. Templates print the
// same few of them for every pod.
type knownYAML struct {
	// maps has the addresses of the maps, texts their YAML once it has been asked for.
	maps  map[uintptr]bool
	texts sync.Map
}

// registerNestedMaps notes a map and the maps in it.
func (k *knownYAML) registerNestedMaps(v any) {
	if k.maps == nil {
		k.maps = map[uintptr]bool{}
	}
	switch v := v.(type) {
	case map[string]any:
		k.maps[reflect.ValueOf(v).Pointer()] = true
		for _, e := range v {
			k.registerNestedMaps(e)
		}
	case []any:
		for _, e := range v {
			k.registerNestedMaps(e)
		}
	}
}

// toYAML is the template function toYaml.
func (k *knownYAML) toYAML(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return toYAML(v)
	}
	at := reflect.ValueOf(m).Pointer()
	if !k.maps[at] {
		return toYAML(v)
	}
	if text, ok := k.texts.Load(at); ok {
		return text.(string)
	}
	text := toYAML(v)
	k.texts.Store(at, text)
	return text
}
