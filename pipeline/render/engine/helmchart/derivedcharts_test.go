// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// derivedTable is what came of the charts that are not functions of their values.
const derivedTable = "DERIVED.md"

const derivedHead = `# Charts with derived values

Written by ` + "`make helm-derived CHARTS=DIR UPDATE=-update`" + `: charts of public repositories that are not functions of their own values, rendered with
` + "`impure: Derived`" + `. "stable" says that two renders give the same bytes, that another seed gives others, and that comments at the beginning of
every template change nothing.

| repository | commit | chart | version | result | first call |
|---|---|---|---|---|---|
`

// TestDerivedChartsOfOthers renders real charts with derived values. Those that need none give what they give anyway: what is put into
// their templates is not seen. It is skipped without charts: see make helm-derived.
func TestDerivedChartsOfOthers(t *testing.T) {
	if *chartsDir == "" {
		t.Skip("no charts are given; see make helm-derived")
	}
	var out strings.Builder
	out.WriteString(derivedHead)
	counts := map[string]int{}
	for _, dir := range findCharts(t) {
		result, call := deriveChart(t, filepath.Join(*chartsDir, dir))
		counts[result]++
		if call == "" {
			continue
		}
		repository, chart, _ := strings.Cut(dir, "/")
		commit, err := exec.Command("git", "-C", filepath.Join(*chartsDir, repository), "rev-parse", "HEAD").Output()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "| %s | %.10s | %s | %s | %s | %s |\n", strings.ReplaceAll(repository, "+", "/"), commit, chart, versionOf(t, dir), result, call)
	}
	t.Logf("%v", counts)
	if *update {
		if err := os.WriteFile(derivedTable, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if before, err := os.ReadFile(derivedTable); err != nil || string(before) != out.String() {
		t.Errorf("the results are not those of %s any more (%v); write them anew with UPDATE=-update", derivedTable, err)
	}
}

func versionOf(t *testing.T, dir string) string {
	t.Helper()
	var meta struct{ Version string }
	if text, err := os.ReadFile(filepath.Join(*chartsDir, dir, "Chart.yaml")); err != nil || yaml.Unmarshal(text, &meta) != nil {
		t.Fatal(dir, err)
	}
	return meta.Version
}

// firstCall finds the function that is refused, and where it is called.
var firstCall = regexp.MustCompile(` chart/([^ :]+:\d+):\d+: executing "[^"]*" at <[^<]*: error calling (\w+): \w+ (?:is|makes|has|reads|asks) `)

// deriveChart returns what came of a chart, and its first call where it is not a function of its values.
func deriveChart(t *testing.T, dir string) (result, call string) {
	t.Helper()
	source := sourceAt(t, dir)
	plain := releaseOf("chart")
	plain.Lookup = v1alpha1.ImpureEmpty
	refused, errRefused := Render(context.Background(), tree.NewView(source, tree.Limits{}), plain, Options{})
	derived := *plain
	derived.Impure, derived.Derived = v1alpha1.ImpureDerived, &v1alpha1.HelmDerived{Time: "2026-01-01"}
	first, err := Render(context.Background(), tree.NewView(source, tree.Limits{}), &derived, Options{Key: keyOf(t, "a")})
	switch {
	case errRefused == nil && err == nil && slices.Equal(first, refused):
		return "a function of its values", ""
	case errRefused == nil:
		t.Errorf("%s: it is a function of its values, and is another with derived values: %v", dir, err)
		return "another", ""
	case !strings.Contains(errRefused.Error(), "each render would give something else"):
		if err == nil || err.Error() != errRefused.Error() {
			t.Errorf("%s: %v\nwithout derived values: %v", dir, err, errRefused)
		}
		return "refused by itself", ""
	}
	if match := firstCall.FindStringSubmatch(errRefused.Error()); match != nil {
		call = match[1] + ": " + match[2]
	} else {
		call = "somewhere"
	}
	if err != nil {
		return "refused: " + strings.ReplaceAll(err.Error(), "|", "/"), call
	}
	return checkStable(t, dir, source, &derived, first), call
}

// checkStable renders again: as it is, with another seed, and with more in the templates.
func checkStable(t *testing.T, dir string, source *tree.Tree, release *v1alpha1.Helm, first []Manifest) string {
	t.Helper()
	render := func(source *tree.Tree, seed string) []Manifest {
		manifests, err := Render(context.Background(), tree.NewView(source, tree.Limits{}), release, Options{Key: keyOf(t, seed)})
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		return manifests
	}
	if !slices.Equal(first, render(source, "a")) {
		t.Errorf("%s: the second render gives something else", dir)
		return "not stable"
	}
	if slices.Equal(first, render(source, "b")) {
		t.Errorf("%s: another seed gives the same", dir)
		return "the same with another seed"
	}
	view := tree.NewView(source, tree.Limits{})
	changed := tree.NewBuilder(tree.Limits{})
	files := map[string]string{}
	filesBelow(t, view, "chart", files)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		if strings.Contains(name, "/templates/") {
			text = "{{- /* a comment */ -}}\n" + text
		}
		if err := changed.Add(name, tree.File, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if withMore := render(changed.Build(), "a"); trimmed(withMore) != trimmed(first) {
		t.Errorf("%s: a comment changes values", dir)
		return "changed by a comment"
	}
	return "stable"
}

// trimmed is the text of a render without space at the beginnings and ends of manifests.
func trimmed(manifests []Manifest) string {
	var out strings.Builder
	for _, one := range manifests {
		out.WriteString(strings.TrimSpace(one.YAML) + "\n")
	}
	return out.String()
}

func filesBelow(t *testing.T, view *tree.View, dir string, files map[string]string) {
	t.Helper()
	list, err := view.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		if entry.Dir {
			filesBelow(t, view, entry.Path, files)
			continue
		}
		content, err := view.Read(entry.Path)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Path] = string(content)
	}
}
