// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/podmap"
)

// WriteChange returns a pod as the user wrote it with a change that admission makes. before and after are the pod with all defaults,
// and possibly with the changes of other steps, without and with the change. The defaults that the API server sets again are left out.
func WriteChange(server admission.Server, written, before, after map[string]any) (map[string]any, error) {
	change, err := podmap.NewUndo(after, before)
	if err != nil {
		return nil, fmt.Errorf("comparing the pods: %w", err)
	}
	user, err := newPod(written)
	if err != nil {
		return nil, err
	}
	seen := admittedPod(server, user)
	changed, err := change.Apply(seen.toPodObject())
	if err != nil {
		return nil, fmt.Errorf("carrying the change over: %w", err)
	}
	to, err := newPod(changed)
	if err != nil {
		return nil, err
	}
	to.extra = user.extra
	out := removeDefaultedFields(server, written, seen, to)
	slim := &newDefaults{server: server, pod: out}
	slim.want = admittedPod(server, out).spec
	own, _ := written["spec"].(map[string]any)
	out.spec = podmap.CopyMap(out.spec)
	slim.removeFromMap(out.spec, own)
	return out.toPodObject(), nil
}

// newDefaults removes from a pod the defaults of what a change has added.
type newDefaults struct {
	server admission.Server
	pod    *pod
	// want is the spec with all defaults, which stays as it is.
	want map[string]any
}

// removeFromMap removes the fields that the user did not write and that the API server sets again.
func (d *newDefaults) removeFromMap(m, user map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		own, wrote := user[key]
		switch v := m[key].(type) {
		case map[string]any:
			if len(v) == 0 && key == "resources" && !wrote {
				delete(m, key) // which only Go's types have
				continue
			}
			below, _ := own.(map[string]any)
			d.removeFromMap(v, below)
		case []any:
			below, _ := own.([]any)
			d.removeFromList(v, below)
		default:
			if wrote {
				continue
			}
			delete(m, key)
			if !podmap.Same(admittedPod(d.server, d.pod).spec, d.want) {
				m[key] = v
			}
		}
	}
}

func (d *newDefaults) removeFromList(list, user []any) {
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok || slices.ContainsFunc(user, func(own any) bool { return podmap.Same(own, e) }) {
			continue
		}
		name, _ := m["name"].(string)
		d.removeFromMap(m, podmap.Find(user, name))
	}
}
