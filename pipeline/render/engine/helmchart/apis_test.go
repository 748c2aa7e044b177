// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestServedAPIs compares the table with what Kubernetes' own types say of when their APIs came and went. Beta versions have
// got further kinds later, which are not served by default, so that one of the kinds must have gone when the table says.
func TestServedAPIs(t *testing.T) {
	compared := 0
	for _, api := range servedAPIs {
		version, err := schema.ParseGroupVersion(api.groupVersion)
		if err != nil {
			t.Fatal(err)
		}
		from, until, known := 1000, map[int]bool{}, false
		for kind := range scheme.Scheme.KnownTypes(version) {
			object, err := scheme.Scheme.New(version.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			if life, ok := object.(interface{ APILifecycleIntroduced() (int, int) }); ok {
				_, minor := life.APILifecycleIntroduced()
				from, known = min(from, minor), true
			}
			if life, ok := object.(interface{ APILifecycleRemoved() (int, int) }); ok {
				_, minor := life.APILifecycleRemoved()
				until[minor] = true
			}
		}
		if !known {
			continue
		}
		compared++
		if api.from > 16 && api.from != from || api.from == 0 && from > 16 || api.until != 0 && !until[api.until] {
			t.Errorf("%s: the table says from %d until %d, Kubernetes from %d until %v", api.groupVersion, api.from, api.until, from, until)
		}
	}
	if compared < 15 {
		t.Errorf("only %d APIs could be compared", compared)
	}
}
