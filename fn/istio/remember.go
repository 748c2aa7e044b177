// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"reflect"
	"sync"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
)

// prepareDefaultRender computes once what is the same for every pod without settings of its own.
func (in *Injector) prepareDefaultRender() error {
	in.known.registerNestedMaps(map[string]any(in.values))
	if !in.profile.Has(feature.ProxyConfigAnnotation) || len(in.opts.ProxyConfigs) > 0 {
		return nil
	}
	pc, _, err := in.mesh.Effective(in.resources, "", nil, nil)
	if err != nil {
		return err
	}
	in.plainProxyConfig = pc
	in.plainProxyJSON = sync.OnceValues(func() (string, error) { return mesh.ProtoToJSON(pc, in.profile.Release()) })
	return nil
}

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
