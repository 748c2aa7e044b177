// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package corpustest finds the conformance corpus, Istio's own test cases, for tests.
package corpustest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/internal/moduleroot"
)

// Dir returns the directory of the corpus: PRERIG_CORPUS, or otherwise ../shared/istio next to the module. It skips
// the test if none exists. The test's name must contain Corpus, or begin with Test_ as those do that are named
// after a document: `make test-corpus` runs such tests, and no others of their packages.
func Dir(t testing.TB) string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if _, isTest := t.(*testing.T); isTest && !strings.Contains(name, "Corpus") && !strings.HasPrefix(name, "Test_") {
		t.Fatal("the name of a test that uses the corpus must contain Corpus, or begin with Test_")
	}
	dir := os.Getenv("PRERIG_CORPUS")
	if dir == "" {
		root, err := moduleroot.Dir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(root, "..", "shared", "istio")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("there is no conformance corpus at %s; set PRERIG_CORPUS to its directory", dir)
	}
	return dir
}
