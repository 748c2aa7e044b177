// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of what is looked at for charts.
const (
	maxChartFile      = 1 << 20 // bytes of a Chart.yaml
	maxChartNested    = 8       // charts of the source inside each other
	maxChartLooks     = 20_000  // at directories that may be charts: a render reads no more files
	maxChartReference = 200
)

// FindCharts returns the charts of repositories that a build needs: that of the release, the dependencies of a chart of the
// source which are not packed in it, or those of the helmCharts of kustomizations.
func FindCharts(ctx context.Context, files tree.Reader, request render.Request) ([]render.ChartReference, error) {
	if request.Type != v1alpha1.BuildHelm {
		return findInKustomizations(ctx, files, request)
	}
	if request.Helm == nil {
		return nil, nil
	}
	if helm := request.Helm; helm.Repository != "" {
		return []render.ChartReference{{
			Repository: helm.Repository,
			Name:       helm.Chart,
			Range:      helm.Version,
			Where:      "spec.build.helm",
			Named:      true,
			Needed:     true,
		}}, nil
	}
	return FindMissing(ctx, files, path.Clean(request.Helm.Chart))
}

// FindMissing returns the charts of repositories that a chart of the tree lacks, in the directory of the chart.
func FindMissing(ctx context.Context, files tree.Reader, directory string) ([]render.ChartReference, error) {
	f := newChartFinder(ctx, files)
	err := f.findIn(directory, 0)
	return f.found, err
}

type chartFinder struct {
	ctx   context.Context
	files tree.Reader
	seen  map[chartPlace]int // how many charts each was inside of when it was looked at
	looks int
	found []render.ChartReference
}

// chartPlace is a chart and the directory that it was reached in. What file://../x of a chart is depends on that where a link leads to the
// chart, so that it is looked at again from elsewhere.
type chartPlace struct{ chart, parent string }

func newChartFinder(ctx context.Context, files tree.Reader) *chartFinder {
	return &chartFinder{ctx: ctx, files: files, seen: map[chartPlace]int{}}
}

// isNew reports whether a chart was not looked at yet, or only so deep inside of others that some of what is below it was left out. Charts may
// depend on themselves, and links lead to what is above them.
func (f *chartFinder) isNew(dir string, info tree.Info, depth int) bool {
	parent, err := f.files.Lookup(path.Dir(dir))
	if err != nil {
		parent = tree.Info{}
	}
	place := chartPlace{info.Path, parent.Path}
	if before, known := f.seen[place]; known && before <= depth {
		return false
	}
	f.seen[place] = depth
	return true
}

// chartDependencies are the files that list dependencies, the second in charts of the first API version.
var chartDependencies = []string{"Chart.yaml", "requirements.yaml"}

// findIn finds what a chart of the source lacks. The renderer reports what is wrong with the chart.
func (f *chartFinder) findIn(dir string, depth int) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	if f.looks++; f.looks > maxChartLooks {
		return &tree.LimitError{What: "the number of charts that are looked at", Limit: maxChartLooks}
	}
	info, err := f.files.Lookup(dir)
	if err != nil || !info.Dir || depth > maxChartNested || !f.isNew(dir, info, depth) {
		return nil //nolint:nilerr // the renderer reports it
	}
	packed, directories := f.packedIn(path.Join(dir, "charts"))
	for _, name := range chartDependencies {
		at := path.Join(dir, name)
		content, err := f.files.Read(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || len(content) > maxChartFile || CheckAliases(content, maxValues) != nil {
			return nil //nolint:nilerr // the renderer reports it
		}
		for _, dependency := range parseDependencies(content) {
			if err := f.ctx.Err(); err != nil {
				return err
			}
			if slices.ContainsFunc(packed, func(name string) bool { return isArchiveOf(name, dependency.Name) }) || slices.Contains(directories, dependency.Name) {
				continue
			}
			if err := f.addDependency(dir, at, dependency, depth); err != nil {
				return err
			}
		}
	}
	for _, name := range directories {
		if err := f.findIn(path.Join(dir, "charts", name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (f *chartFinder) addDependency(dir, at string, dependency chartDependency, depth int) error {
	if local, ok := strings.CutPrefix(dependency.Repository, "file://"); ok {
		return f.findIn(path.Join(dir, local), depth+1)
	}
	if v1alpha1.CheckChartRepository(dependency.Repository) != nil {
		return nil
	}
	if len(f.found) >= maxChartReference {
		return &tree.LimitError{What: "the number of dependencies", Limit: maxChartReference}
	}
	f.found = append(f.found, render.ChartReference{
		Repository: dependency.Repository, Name: dependency.Name, Range: dependency.Version, Where: fmt.Sprintf("%s:%d", at, dependency.line),
	})
	return nil
}

// packedIn returns the archives and the directories of a charts directory.
func (f *chartFinder) packedIn(dir string) (archives, directories []string) {
	list, err := f.files.List(dir)
	if err != nil {
		return nil, nil
	}
	for _, entry := range list {
		name := path.Base(entry.Path)
		if entry.Dir {
			directories = append(directories, name)
		} else {
			archives = append(archives, name)
		}
	}
	return archives, directories
}

// isArchiveOf reports whether a file is called as helm package calls the archives of a chart.
func isArchiveOf(file, chart string) bool {
	rest, ok := strings.CutPrefix(file, chart+"-")
	rest = strings.TrimPrefix(rest, "v")
	return ok && strings.HasSuffix(rest, ".tgz") && rest[0] >= '0' && rest[0] <= '9'
}

// chartDependency is an entry of dependencies.
type chartDependency struct {
	Name       string `yaml:"name"`
	Version    string `yaml:"version"`
	Repository string `yaml:"repository"`
	line       int
}

// parseDependencies reads the dependencies of a Chart.yaml or requirements.yaml; none where it is not one, or too large.
func parseDependencies(content []byte) []chartDependency {
	var doc yaml.Node
	var file struct {
		Dependencies []yaml.Node `yaml:"dependencies"`
	}
	if yaml.Unmarshal(content, &doc) != nil || !isWithin(&doc, maxValues) || doc.Decode(&file) != nil {
		return nil
	}
	var out []chartDependency
	for _, node := range file.Dependencies {
		one := chartDependency{line: node.Line}
		if node.Decode(&one) == nil && one.Name != "" {
			out = append(out, one)
		}
	}
	return out
}
