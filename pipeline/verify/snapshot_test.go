// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import "testing"

// TestReadIsKept notes that there are no objects of a kind, before the objects of others are added.
func TestReadIsKept(t *testing.T) {
	s := &Snapshot{}
	s.Read("LimitRange")
	s.Add(parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}}`))
	if !s.hasReadKind("LimitRange") || !s.hasReadKind("Pod") || s.hasReadKind("ServiceAccount") {
		t.Errorf("it knows %v", s.kinds)
	}
}
