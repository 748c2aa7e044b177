// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// kustomizationCharts finds the charts of kustomizations, going through them as FindBases does, remote bases included.
type kustomizationCharts struct {
	kustomizationSearch
	charts *chartFinder
	bases  map[string]render.Base
}

// findInKustomizations returns the charts that a build with kustomize needs, or nil for other builds.
func findInKustomizations(ctx context.Context, files tree.Reader, request render.Request) ([]render.ChartReference, error) {
	kind, err := BuildType(files, request)
	if err != nil || kind != v1alpha1.BuildKustomize {
		return nil, nil //nolint:nilerr // the renderer reports it
	}
	start, err := files.Lookup(request.Path)
	if err != nil || !start.Dir {
		return nil, nil //nolint:nilerr // the renderer reports it
	}
	f := &kustomizationCharts{kustomizationSearch: newSearch(ctx, request), charts: newChartFinder(ctx, files), bases: map[string]render.Base{}}
	for _, base := range request.Bases {
		f.bases[base.Name] = base
	}
	err = f.findInDirectory(start.Path, render.Base{})
	return f.charts.found, err
}

func (f *kustomizationCharts) findInDirectory(dir string, in render.Base) error {
	if isNew, err := f.beginDirectory(dir); err != nil || !isNew {
		return err
	}
	for _, name := range KustomizationNames() {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		at := path.Join(dir, name)
		content, err := f.charts.files.Read(at)
		if err != nil {
			continue // the renderer reports it if it gets to it
		}
		k, err := f.parseBoundedKustomization(at, in, content)
		if err != nil || k == nil {
			continue
		}
		if err := f.findInEntries(dir, k); err != nil {
			return err
		}
		below, err := f.directoriesOf(append(k.Local, k.Remote...), func(e Entry) string { return f.directoryOf(dir, k, e) })
		if err != nil {
			return err
		}
		k.dropDocument()
		for _, one := range below {
			first, _, _ := strings.Cut(one.Value(), "/")
			if err := f.findInDirectory(one.Value(), f.bases[first]); err != nil {
				return err
			}
		}
	}
	return nil
}

// directoryOf returns the directory that an entry of a kustomization names, "" where it names none.
func (f *kustomizationCharts) directoryOf(dir string, k *File, e Entry) string {
	at := path.Join(dir, e.Value)
	if parsed, err := remotebase.Parse(e.Value); err == nil {
		base, ok := f.bases[render.NewBase(k.In.Name, e.Value).Name]
		if !ok {
			return ""
		}
		at = path.Join(base.Name, parsed.Directory)
	}
	info, err := f.charts.files.Lookup(at)
	if err != nil || !info.Dir {
		return ""
	}
	return info.Path
}

// ChartEntry is an entry of helmCharts (source: HelmChart in sigs.k8s.io/kustomize/api/types v0.21).
type ChartEntry struct {
	// Name of the chart, the version or range of versions, and the URL of the repository.
	Name, Version, Repo string
	// Node is the entry in the document.
	Node *yaml.Node `yaml:"-"`
}

// ChartEntries returns the entries of helmCharts that have a name.
func (k *File) ChartEntries() []ChartEntry {
	var out []ChartEntry
	root := k.Doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if value := root.Content[i+1]; strings.EqualFold(root.Content[i].Value, "helmCharts") && value.Kind == yaml.SequenceNode {
			for _, node := range value.Content {
				entry := ChartEntry{Node: node}
				if node.Decode(&entry) == nil && entry.Name != "" {
					out = append(out, entry)
				}
			}
		}
	}
	return out
}

// chartHome returns the directory with the charts of a kustomization, relative to it.
func (k *File) chartHome() string {
	root := k.Doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		var globals struct {
			ChartHome string `yaml:"chartHome"`
		}
		if strings.EqualFold(root.Content[i].Value, "helmGlobals") && root.Content[i+1].Decode(&globals) == nil && globals.ChartHome != "" {
			return globals.ChartHome
		}
	}
	return "charts"
}

// ChartDirectory returns where kustomize keeps a chart below the directory for charts.
func ChartDirectory(name, version, repository string) string {
	if version != "" && repository != "" {
		return path.Join(name+"-"+version, name)
	}
	return name
}

// findInEntries adds what the helmCharts of a kustomization need.
func (f *kustomizationCharts) findInEntries(dir string, k *File) error {
	home := k.chartHome()
	for _, entry := range k.ChartEntries() {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		at := path.Join(dir, home, ChartDirectory(entry.Name, entry.Version, entry.Repo))
		if info, err := f.charts.files.Lookup(at); err == nil && info.Dir {
			if err := f.charts.findIn(at, 0); err != nil {
				return err
			}
			continue
		}
		if v1alpha1.CheckChartRepository(entry.Repo) != nil {
			continue
		}
		if len(f.charts.found) >= maxChartReference {
			return &tree.LimitError{What: "the number of charts", Limit: maxChartReference}
		}
		f.charts.found = append(f.charts.found, render.ChartReference{
			Repository: entry.Repo, Name: entry.Name, Range: entry.Version, Where: fmt.Sprintf("%s:%d", k.Shown, entry.Node.Line),
		})
	}
	return nil
}
