// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package definitions

import (
	"slices"
	"strings"
	"testing"
)

// TestIndexFitsTheFiles: each kind of the list has definitions in the file of its product, and no other product defines it.
func TestIndexFitsTheFiles(t *testing.T) {
	t.Parallel()
	byKind, err := products()
	if err != nil {
		t.Fatal(err)
	}
	if len(byKind) < 150 {
		t.Errorf("%d kinds are known", len(byKind))
	}
	var l Library
	for kind, product := range byKind {
		group, name, _ := strings.Cut(kind, "/")
		found, err := l.Of(product, group, name, "")
		if err != nil || len(found) == 0 {
			t.Errorf("%s of %s: %d definitions, %v", kind, product.Name, len(found), err)
		}
		for _, d := range found {
			for _, release := range d.Releases {
				if !slices.Contains(product.Releases, release) {
					t.Errorf("%s is of the release %s, which %s does not have", kind, release, product.Name)
				}
			}
		}
	}
}

// TestNeighbours: a release between known ones has the definitions of both.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	known := []string{"1.24.2", "1.30.8", "1.31.4", "1.32.0"}
	for release, want := range map[string]string{
		"1.31": "1.31.4", "1.31.9": "1.31.4", "v1.32.0": "1.32.0", "1.27.3": "1.24.2 1.30.8", "1.20": "1.24.2", "1.40": "1.32.0", "2.0": "1.32.0",
	} {
		if got := strings.Join(neighbours(known, release), " "); got != want {
			t.Errorf("%s: got %s, want %s", release, got, want)
		}
	}
}
