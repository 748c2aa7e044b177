// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/schemas"
)

const compatibilityPage = "docs/compatibility.md"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows returns the rows of the first table behind a heading, without its head, as cells.
func rows(t *testing.T, page, heading string) (out [][]string) {
	t.Helper()
	_, text, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", compatibilityPage, heading)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			if len(out) > 0 {
				break
			}
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		out = append(out, cells)
	}
	if len(out) < 3 {
		t.Fatalf("%s has no table behind %q", compatibilityPage, heading)
	}
	return out[2:]
}

// TestEveryFieldHasAMaturity compares the tables with the schemas.
func TestEveryFieldHasAMaturity(t *testing.T) {
	page := read(t, compatibilityPage)
	for heading, text := range map[string][]byte{"### InjectionPolicy": schemas.InjectionPolicy, "### RenderPipeline": schemas.RenderPipeline} {
		var s schema
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		resolve := func(s2 schema) schema {
			if name, isRef := strings.CutPrefix(s2.Ref, "#/$defs/"); isRef {
				return s.Defs[name]
			}
			return s2
		}
		want := slices.Sorted(maps.Keys(resolve(resolve(s).Properties["spec"]).Properties))
		var got []string
		for _, row := range rows(t, page, heading) {
			got = append(got, strings.Trim(row[0], "`"))
			if row[1] != "stable" && row[1] != "beta" && row[1] != "alpha" {
				t.Errorf("%s: %s is %q", heading, row[0], row[1])
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-schema +page):\n%s", heading, diff)
		}
	}
}

var (
	aVersion = regexp.MustCompile(`\d+(?:\.\d+)+(?:-[a-z]+\.\d+)?`)
	aSource  = regexp.MustCompile("`([^`]+)`: `([^`]+)`")
	aTarget  = regexp.MustCompile("`make ([a-z0-9-]+)`")
	// tests are names with the package that they are in: "`TestA` and `TestB` in `fn/x`".
	tests = regexp.MustCompile("((?:`Test[A-Za-z]+`(?:, | and )?)+) in `([^`]+)`")
	aTest = regexp.MustCompile("`(Test[A-Za-z]+)`")
)

// TestVersionsAreThoseOfTheFiles looks each version up in the file that the page names.
func TestVersionsAreThoseOfTheFiles(t *testing.T) {
	page := read(t, compatibilityPage)
	table := rows(t, page, "## What it is tested with")
	if len(table) < 15 {
		t.Errorf("the table has only %d rows", len(table))
	}
	for _, row := range table {
		said := fmt.Sprintf("1.%d 1.%d", release.OldestMinor, release.NewestMinor)
		if row[2] != "the table of releases" {
			said = ""
			for _, source := range aSource.FindAllStringSubmatch(row[2], -1) {
				said += source[2] + " "
				if !strings.Contains(read(t, source[1]), source[2]) {
					t.Errorf("%s: %s does not say %s", row[0], source[1], source[2])
				}
			}
		}
		versions := aVersion.FindAllString(row[1], -1)
		if len(versions) == 0 {
			t.Errorf("%s has no version", row[0])
		}
		for _, version := range versions {
			if !regexp.MustCompile(`(^|[^\d.])` + regexp.QuoteMeta(version) + `(\.\d|[^\d.]|$)`).MatchString(said) {
				t.Errorf("%s: the version %s is not in %q", row[0], version, said)
			}
		}
	}
}

// TestWhatProvesItExists looks for the tests in their packages, and for the targets.
func TestWhatProvesItExists(t *testing.T) {
	page := read(t, compatibilityPage)
	makefile := "\n" + read(t, "Makefile")
	found := 0
	for _, row := range slices.Concat(rows(t, page, "## What it is tested with"), rows(t, page, "### Not run itself")) {
		proof := row[len(row)-1]
		named := 0
		for _, target := range aTarget.FindAllStringSubmatch(proof, -1) {
			if named++; !strings.Contains(makefile, "\n"+target[1]+":") {
				t.Errorf("%s: there is no make %s", row[0], target[1])
			}
		}
		in := tests.FindAllStringSubmatch(proof, -1)
		for _, group := range in {
			sources := testsOf(t, group[2])
			for _, name := range aTest.FindAllStringSubmatch(group[1], -1) {
				named++
				found++
				if !strings.Contains(sources, "\nfunc "+name[1]+"(") {
					t.Errorf("%s: %s has no %s", row[0], group[2], name[1])
				}
			}
		}
		if named == 0 || len(aTest.FindAllString(proof, -1)) != len(aTest.FindAllString(strings.Join(firsts(in), " "), -1)) {
			t.Errorf("%s: nothing, or a test without its package, proves it: %s", row[0], proof)
		}
	}
	if found < 25 {
		t.Errorf("the page names only %d tests", found)
	}
}

func firsts(groups [][]string) (out []string) {
	for _, group := range groups {
		out = append(out, group[1])
	}
	return out
}

// testsOf is the text of a package's tests.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s has no tests: %v", dir, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
