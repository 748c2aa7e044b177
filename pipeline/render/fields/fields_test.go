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
