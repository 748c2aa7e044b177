// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fields

import "testing"

// TestADefaultedPortIsTheSameElement: the default of a field that tells elements apart makes no other element.
func TestADefaultedPortIsTheSameElement(t *testing.T) {
	pod := func(port map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "ports": []any{port}}}}}
	}
	before, after := pod(map[string]any{"containerPort": 80}), pod(map[string]any{"containerPort": 80, "protocol": "TCP"})
	found := Differences(before, after)
	if len(found) != 1 || found[0].Path != "spec.containers[web].ports[80/TCP].protocol" || found[0].After != "TCP" {
		t.Errorf("got %v", found)
	}
}

// TestAnEmptyMapThatIsFilled: the fields in it are the difference, and not the map itself; one that comes or goes is a difference.
func TestAnEmptyMapThatIsFilled(t *testing.T) {
	empty := map[string]any{"resources": map[string]any{}}
	filled := map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}
	for _, c := range []struct{ before, after map[string]any }{{empty, filled}, {filled, empty}} {
		if found := Differences(c.before, c.after); len(found) != 1 || found[0].Path != "resources.limits.cpu" {
			t.Errorf("%v to %v: got %v", c.before, c.after, found)
		}
	}
	if found := Differences(map[string]any{}, empty); len(found) != 1 || found[0].Path != "resources" {
		t.Errorf("got %v", found)
	}
}
