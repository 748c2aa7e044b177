// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/podmap"
)

// manager is an entry of managedFields: who set which fields.
type manager struct {
	name, operation, subresource string
	time                         time.Time
	fields                       map[string]any
}

// managersByTime returns who set fields of an object, by the time of their last write.
func managersByTime(obj map[string]any) []manager {
	var out []manager
	for _, entry := range mapsAtPath(obj, "metadata", "managedFields") {
		t, _ := time.Parse(time.RFC3339, podmap.TextAt(entry, "time"))
		out = append(out, manager{
			name: podmap.TextAt(entry, "manager"), operation: podmap.TextAt(entry, "operation"), subresource: podmap.TextAt(entry, "subresource"),
			time: t, fields: podmap.MapAt(entry, "fieldsV1"),
		})
	}
	slices.SortStableFunc(out, func(a, b manager) int { return a.time.Compare(b.time) })
	return out
}

// webhooksAtMost is the maximum time that mutating webhooks may need for an object: the API server cancels a
// request after a minute.
const webhooksAtMost = time.Minute + time.Second

// creatingManagerEntry returns the entry of the manager that created an object, or nil if unknown: a later write by the
// same manager changes its time, and of two that wrote at the time of creation only the fields that a pod is created
// with identify the creator. The API server records the manager's time before it calls mutating webhooks, the object's
// after them, both in whole seconds.
func creatingManagerEntry(entries []manager, obj map[string]any) *manager {
	var near, made []*manager
	at := creationTime(obj)
	for i, m := range entries {
		if later := m.time.Sub(at); m.subresource != "" || at.IsZero() || later > time.Second || later < -webhooksAtMost {
			continue
		}
		near = append(near, &entries[i])
		if m.ownsFieldAt([]step{{key: "spec"}, {key: "restartPolicy"}}) { // it is immutable
			made = append(made, &entries[i])
		}
	}
	if len(near) > 1 {
		near = made
	}
	if len(near) != 1 {
		return nil
	}
	return near[0]
}

// ownsFieldAt reports whether the manager has set the field at a path, or something in it.
func (m manager) ownsFieldAt(path []step) bool {
	fields := m.fields
	for _, s := range path {
		next, ok := descendManagedFields(fields, s)
		if !ok || len(next) == 0 {
			return ok // a field without parts is owned as a whole
		}
		fields = next
	}
	return true
}

// sets reports whether the manager has set the field at a path itself, and not only a field around it.
func (m manager) sets(path []step) bool {
	fields := m.fields
	for _, s := range path {
		next, ok := descendManagedFields(fields, s)
		if !ok {
			return false
		}
		fields = next
	}
	return true
}

// descendManagedFields returns what a manager has set below a step.
func descendManagedFields(fields map[string]any, s step) (map[string]any, bool) {
	if !s.element {
		next, ok := fields["f:"+s.key].(map[string]any)
		return next, ok
	}
	for key, v := range fields {
		content, found := strings.CutPrefix(key, "k:")
		if !found {
			if key == "v:"+quoteJSONString(s.key) {
				next, _ := v.(map[string]any)
				return next, true
			}
			continue
		}
		var of map[string]any
		if json.Unmarshal([]byte(content), &of) != nil {
			continue
		}
		if sameKeys(of, s.of) {
			next, ok := v.(map[string]any)
			return next, ok
		}
	}
	return nil, false
}

func quoteJSONString(s string) string {
	out, _ := json.Marshal(s) // a text can be written
	return string(out)
}

// sameKeys compares the fields that identify an element, whatever Go types their numbers have.
func sameKeys(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		if !reflect.DeepEqual(v, b[key]) && !sameJSON(v, b[key]) {
			return false
		}
	}
	return true
}
