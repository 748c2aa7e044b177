// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

var (
	chartsDir = flag.String("charts", "", "a directory of checked out repositories with charts")
	helms     = flag.String("helms", "", "programs to compare with, as VERSION=PROGRAM, separated by commas")
	update    = flag.Bool("update", false, "write the table anew")
)

// table is what came of the charts, with the commits of their repositories. The charts are not in this repository.
const table = "CHARTS.md"

const tableHead = `# Charts compared with Helm

Written by ` + "`make helm CHARTS=DIR UPDATE=-update`" + `: every chart of public repositories, with its own values, rendered by Prerig and by
` + "`helm template`" + ` with the same release, Kubernetes version and APIs. "equal" are equal objects. A chart whose dependencies are not packed,
or that needs values, is refused by both. The charts of bitnami/charts that depend on its common chart only have it packed from the same
commit. Functions that look into a cluster find nothing, as with ` + "`helm template`" + `.

| repository | commit | chart | version | result | note |
|---|---|---|---|---|---|
`

// TestChartsOfOthers compares renders of real charts with those of Helm itself. It is skipped without charts: see make helm.
func TestChartsOfOthers(t *testing.T) {
	if *chartsDir == "" || *helms == "" {
		t.Skip("no charts and programs are given; see make helm")
	}
	var out strings.Builder
	out.WriteString(tableHead)
	counts := map[string]int{}
	for _, dir := range findCharts(t) {
		repository, chart, _ := strings.Cut(dir, "/")
		commit, err := exec.Command("git", "-C", filepath.Join(*chartsDir, repository), "rev-parse", "HEAD").Output()
		if err != nil {
			t.Fatal(err)
		}
		row := compareChart(t, dir)
		fmt.Fprintf(&out, "| %s | %.10s | %s | %s | %s | %s |\n", strings.ReplaceAll(repository, "+", "/"), commit, chart, row.version, row.result, row.note)
		counts[row.result]++
		if strings.Contains(row.result, "different") {
			t.Logf("%s: %s: %s", dir, row.result, row.note)
		}
	}
	t.Logf("%v", counts)
	if *update {
		if err := os.WriteFile(table, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if before, err := os.ReadFile(table); err != nil || string(before) != out.String() {
		t.Errorf("the results are not those of %s any more (%v); write them anew with UPDATE=-update", table, err)
	}
}

// findCharts returns the directories of charts below the given one, without those inside of other charts, sorted.
func findCharts(t *testing.T) []string {
	var found []string
	err := filepath.WalkDir(*chartsDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == ".git" {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err != nil {
			return nil //nolint:nilerr // it is no chart
		}
		at, err := filepath.Rel(*chartsDir, path)
		if err != nil {
			return err
		}
		if !strings.Contains(at, "/") {
			at += "/."
		}
		found = append(found, filepath.ToSlash(at))
		return fs.SkipDir
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("found %d charts: %v", len(found), err)
	}
	slices.Sort(found)
	return found
}

type chartResult struct{ version, result, note string }

// compareChart renders one chart by Prerig and by each Helm.
func compareChart(t *testing.T, dir string) chartResult {
	t.Helper()
	full := filepath.Join(*chartsDir, dir)
	release := releaseOf("chart")
	release.Lookup = v1alpha1.ImpureEmpty
	var row chartResult
	var meta struct{ Version string }
	if text, err := os.ReadFile(filepath.Join(full, "Chart.yaml")); err != nil || yaml.Unmarshal(text, &meta) != nil {
		t.Fatal(full, err)
	}
	row.version = meta.Version
	source := sourceAt(t, full)
	var results []string
	for one := range strings.SplitSeq(*helms, ",") {
		version, program, _ := strings.Cut(one, "=")
		known := knownAPIs(t, program)
		release.APIVersions = known
		manifests, errOurs := Render(context.Background(), tree.NewView(source, tree.Limits{}), release, Options{})
		theirs, errTheirs := runHelm(program, full)
		result, note := compareRenders(manifests, errOurs, theirs, errTheirs)
		if note != "" {
			row.note = strings.NewReplacer("|", "/", "\n", " ", *chartsDir, "").Replace(note)
		}
		results = append(results, version+": "+result)
	}
	row.result = strings.Join(results, ", ")
	return row
}

func compareRenders(manifests []Manifest, errOurs error, theirs string, errTheirs error) (result, note string) {
	switch {
	case errOurs != nil && errTheirs != nil:
		return "refused by both", strings.TrimPrefix(errOurs.Error(), "rendering the chart chart: ")
	case errOurs != nil && strings.Contains(errOurs.Error(), "each render would have another result"):
		return "not a function of its values", strings.TrimPrefix(errOurs.Error(), "rendering the chart chart: ")
	case errOurs != nil:
		return "different: refused by Prerig", errOurs.Error()
	case errTheirs != nil:
		return "different: refused by Helm", errTheirs.Error()
	}
	var ours strings.Builder
	for _, manifest := range manifests {
		ours.WriteString("---\n" + manifest.YAML + "\n")
	}
	mine, errOurs := objectsOf(ours.String())
	other, errTheirs := objectsOf(theirs)
	if errOurs != nil || errTheirs != nil {
		return "different: no YAML", errors.Join(errOurs, errTheirs).Error()
	}
	if len(mine) != len(other) {
		return "different", fmt.Sprintf("%d objects, and %d of Helm", len(mine), len(other))
	}
	for i := range mine {
		if mine[i] != other[i] {
			at := 0
			for at < min(len(mine[i]), len(other[i])) && mine[i][at] == other[i][at] {
				at++
			}
			return "different", fmt.Sprintf("`%.80s`, and `%.80s` of Helm", mine[i][max(0, at-20):], other[i][max(0, at-20):])
		}
	}
	return "equal", ""
}

// objectsOf returns the objects of a stream as JSON, sorted.
func objectsOf(text string) ([]string, error) {
	var out []string
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			slices.Sort(out)
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := yaml.Unmarshal(doc, &object); err != nil {
			return nil, err
		}
		if object == nil {
			continue
		}
		one, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		out = append(out, string(one))
	}
}

// sourceAt makes a source of a chart's directory.
func sourceAt(t *testing.T, dir string) *tree.Tree {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && entry.Name() == ".git" {
				return fs.SkipDir
			}
			return err
		}
		content, err := os.ReadFile(path) // links followed, as they may lead out of the chart
		if err != nil {
			return nil //nolint:nilerr // a link to what is not checked out
		}
		at, err := filepath.Rel(dir, path)
		return errors.Join(err, b.Add("chart/"+filepath.ToSlash(at), tree.File, content))
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// runHelm runs helm template with the release of releaseOf.
func runHelm(program, chart string) (string, error) {
	args := []string{"template", "web", chart, "--namespace", "shop", "--kube-version", "1.33.4", "--include-crds", "--skip-tests"}
	served, err := clusterCapabilities(releaseOf(""))
	if err != nil {
		return "", err
	}
	for _, api := range served.APIVersions {
		args = append(args, "--api-versions", api)
	}
	command := exec.Command(program, args...)
	command.Env = []string{"HOME=/nonexistent", "TZ=UTC"}
	var out, stderr bytes.Buffer
	command.Stdout, command.Stderr = &out, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return out.String(), nil
}

// knownAPIs are those that a Helm was built with, which it adds to the given ones.
func knownAPIs(t *testing.T, program string) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"Chart.yaml": chartYAML, "templates/a.yaml": "apis: {{ .Capabilities.APIVersions | toJson }}\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := exec.Command(program, "template", "x", dir).Output()
	var read struct{ Apis []string }
	if err != nil || yaml.Unmarshal(text, &read) != nil || len(read.Apis) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	return read.Apis
}
