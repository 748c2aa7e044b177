// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitectureNamesEveryPackage compares the map in ARCHITECTURE.md, the first column of its tables, with the packages
// that there are.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	cmd := exec.Command("go", "list", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		packages[strings.TrimPrefix(strings.TrimSpace(line), "github.com/prerig/prerig/")] = true
	}
	if len(packages) < 50 {
		t.Fatalf("go list knows only %d packages", len(packages))
	}
	named := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(string(read(t, "../ARCHITECTURE.md")), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			named[strings.Trim(name, "`")] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if !named[name] {
			t.Errorf("the map in ARCHITECTURE.md does not name the package %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !packages[name] {
			t.Errorf("the map in ARCHITECTURE.md names %s, and there is no such package", name)
		}
	}
}

// TestSecurityNamesRealTests looks for the tests that SECURITY.md says hold its promises.
func TestSecurityNamesRealTests(t *testing.T) {
	names := regexp.MustCompile("`(Test[A-Z][A-Za-z]+)`").FindAllStringSubmatch(string(read(t, "../SECURITY.md")), -1)
	if len(names) < 20 {
		t.Fatalf("SECURITY.md names only %d tests", len(names))
	}
	sources := git(t, "..", "grep", "--untracked", "-h", "^func Test", "--", "*_test.go")
	for _, name := range names {
		if !strings.Contains(sources, "func "+name[1]+"(") {
			t.Errorf("SECURITY.md names %s, and there is no such test", name[1])
		}
	}
}
