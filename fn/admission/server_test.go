// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	"github.com/prerig/prerig/fn/admission"
)

// TestNewServer reads versions as clusters give them.
func TestNewServer(t *testing.T) {
	for _, version := range []string{"", "1.34", "v1.34.2", "1.34.2-gke.100", "1.34+"} {
		if _, err := admission.NewServer(version); err != nil {
			t.Errorf("%q: %v", version, err)
		}
	}
	for _, version := range []string{"2.1", "1", "1.x", "newest"} {
		if _, err := admission.NewServer(version); err == nil {
			t.Errorf("%q is taken for a version", version)
		}
	}
}
