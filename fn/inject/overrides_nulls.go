// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// withNulls returns the JSON of a container of the annotation with the fields that are null in the container that the user
// wrote, if the request wants them noted. Whoever reads the annotation into Kubernetes' types does not see them.
func (r *run) withNulls(container []byte, name string) json.RawMessage {
	if !r.req.RecordNulls {
		return container
	}
	var written map[string]json.RawMessage
	if json.Unmarshal(container, &written) != nil {
		return container
	}
	spec, _ := r.user["spec"].(map[string]any)
	for _, key := range []string{containersKey, initContainersKey} {
		list, _ := spec[key].([]any)
		own := podmap.Find(list, name)
		if own == nil {
			continue
		}
		for _, field := range podmap.SortedKeys(own) {
			if own[field] == nil && written[field] == nil && podmap.ContainerSchema().Field(field) != nil {
				container = append(slices.Clip(bytes.TrimSuffix(container, []byte("}"))), `,"`+field+`":null}`...)
			}
		}
		break
	}
	return container
}

// addNulls adds the fields that the pod's annotation says were null to the containers that were read from it.
func (o overrides) addNulls(p *pod) {
	text, _ := p.annotation(overridesAnnotation)
	var noted map[string][]map[string]any
	if json.Unmarshal([]byte(text), &noted) != nil {
		return
	}
	for _, key := range []string{containersKey, initContainersKey} {
		for i, e := range o.of(key) {
			c, _ := e.(map[string]any)
			if i >= len(noted[key]) || noted[key][i]["name"] != c["name"] {
				continue
			}
			for field, v := range noted[key][i] {
				if _, there := c[field]; v == nil && !there {
					c[field] = nil
				}
			}
		}
	}
}
