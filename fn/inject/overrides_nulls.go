// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// withExplicitNulls returns the JSON of an annotation container including the fields that are null in the container of
// a user's pod. Decoding the annotation into Kubernetes' types drops them.
func withExplicitNulls(container []byte, name string, user map[string]any) json.RawMessage {
	spec, _ := user["spec"].(map[string]any)
	for _, key := range []string{containersKey, initContainersKey} {
		list, _ := spec[key].([]any)
		own := podmap.Find(list, name)
		var written map[string]json.RawMessage
		if own == nil || json.Unmarshal(container, &written) != nil {
			continue
		}
		for _, field := range podmap.SortedKeys(own) {
			if own[field] == nil && written[field] == nil && podmap.ContainerSchema().Field(field) != nil {
				container = append(slices.Clip(bytes.TrimSuffix(container, []byte("}"))), `,"`+field+`":null}`...)
			}
		}
		container = withNullQuantities(container, written["resources"], own["resources"])
		break
	}
	return container
}

// quantityMaps are the maps of quantities in a container's resources.
var quantityMaps = []string{"requests", "limits"}

// withNullQuantities returns the JSON of a container with null in the place of the quantities that are null in the resources of
// the user's container, which Kubernetes' types write as 0.
func withNullQuantities(container, written []byte, own any) []byte {
	var resources map[string]any
	if json.Unmarshal(written, &resources) != nil {
		return container
	}
	user, _ := own.(map[string]any)
	changed := false
	for _, kind := range quantityMaps {
		quantities, _ := user[kind].(map[string]any)
		noted, _ := resources[kind].(map[string]any)
		for name, v := range quantities {
			if _, there := noted[name]; there && v == nil {
				noted[name] = nil
				changed = true
			}
		}
	}
	text, err := json.Marshal(resources)
	if !changed || err != nil {
		return container
	}
	return bytes.Replace(container, written, text, 1)
}

// addNullQuantities puts null in the place of the quantities of a container that its annotation notes as null.
func addNullQuantities(container, noted map[string]any) {
	resources, _ := container["resources"].(map[string]any)
	notedResources, _ := noted["resources"].(map[string]any)
	for _, kind := range quantityMaps {
		quantities, _ := resources[kind].(map[string]any)
		written, _ := notedResources[kind].(map[string]any)
		for name, v := range written {
			if _, there := quantities[name]; v == nil && there {
				quantities[name] = nil
			}
		}
	}
}

// addNulls adds the fields that the pod's annotation records as null to the containers read from it.
func (o overrides) addNulls(p *pod) {
	text, _ := p.annotation(overridesAnnotation)
	var noted map[string][]map[string]any
	if json.Unmarshal([]byte(text), &noted) != nil {
		return
	}
	for _, key := range []string{containersKey, initContainersKey} {
		for i, e := range o.containersForKey(key) {
			c, _ := e.(map[string]any)
			if i >= len(noted[key]) || noted[key][i]["name"] != c["name"] {
				continue
			}
			for field, v := range noted[key][i] {
				if _, there := c[field]; v == nil && !there {
					c[field] = nil
				}
			}
			addNullQuantities(c, noted[key][i])
		}
	}
}
