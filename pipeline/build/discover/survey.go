// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render/artifact"
	"github.com/prerig/prerig/pipeline/source/content"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// contents are the directories of a repository, and the objects in them that matter.
type contents struct {
	reader      tree.Reader
	policyName  string // see Options
	directories map[string]*directory
	// releases are HelmReleases, Applications and ApplicationSets, and sources the directories with what HelmReleases refer to, by kind
	// and name.
	releases       []release
	sources        map[string][]string
	kustomizations []release // of Flux
	generators     []release // of artifacts of Flux
	syncs          []fluxSync
	hasClusters    bool              // Secrets with the clusters of Argo CD
	addresses      map[string]string // of artifacts that are pushed, by the kind and name of the source
}

// readContents reads a repository.
func readContents(r tree.Reader, policyName string) (*contents, error) {
	c := &contents{reader: r, policyName: policyName, directories: map[string]*directory{}, sources: map[string][]string{}, addresses: map[string]string{}}
	if err := c.readDirectory("."); err != nil {
		return nil, fmt.Errorf("looking for builds: %w", err)
	}
	return c, nil
}

// survey tells the builds of a repository from what they read.
type survey struct {
	*contents
	// covered are directories, and files are manifests, that other builds read.
	covered, files map[string]bool
	// mixed has the directories that are above other builds; nil before isMixed is asked.
	mixed map[string]bool
	// clusters are the directories that a cluster of Flux starts with, with NAMESPACE/NAME of their source.
	clusters map[string]string
	// ownURLs are the repositories of Applications whose paths the tree has, by their normal forms.
	ownURLs map[string]string
	claims  claims
	// unknown are the sources with artifacts of a part of the repository that the files do not tell.
	unknown []string
	// named reports whether Applications name the repository by a URL of its remotes.
	named bool
}

// release is a HelmRelease, Application or ApplicationSet, with its file and the directory of it.
type release struct {
	at, file string
	object   map[string]any
}

// directory is what one directory contains.
type directory struct {
	chart         bool
	policy        bool
	kustomization *kustomization
	manifests     []string // paths of files with objects
	children      []string
}

// kustomization is what matters of one.
type kustomization struct {
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Bases      []string `json:"bases"`
	Components []string `json:"components"`
	Generators []string `json:"generators"`
	// HelmCharts and HelmInflator name charts.
	HelmCharts   []any `json:"helmCharts"`
	HelmInflator []any `json:"helmChartInflationGenerator"`
}

// passedOver are directories that hold no manifests of a cluster, whatever their content.
var passedOver = map[string]bool{"node_modules": true, "vendor": true, "testdata": true}

// toolGroups are those of objects for tools, such as Prerig's own pipelines.
var toolGroups = []string{"kustomize.config.k8s.io", "prerig.dev"}

// shortGroups are the groups of Kubernetes without a dot. The group of a custom resource has one, so that files such as skaffold.yaml are
// no objects.
var shortGroups = []string{"apps", "autoscaling", "batch", "extensions", "policy"}

// isOfCluster reports whether an object may be one of a cluster.
func isOfCluster(meta manifest.Meta) bool {
	group, _, hasGroup := strings.Cut(meta.APIVersion, "/")
	known := !hasGroup || strings.Contains(group, ".") || slices.Contains(shortGroups, group)
	return known && meta.APIVersion != "" && meta.Kind != "" && meta.Name != "" && !slices.Contains(toolGroups, group)
}

// maxFile is the size of the largest file that is looked into.
const maxFile = 1 << 20

// readDirectory reads a directory and those below it. The files of a chart are Helm's.
func (c *contents) readDirectory(at string) error {
	entries, err := c.reader.List(at)
	if errors.Is(err, tree.ErrSubmodule) {
		return nil // its files are another repository's
	}
	if err != nil {
		return err
	}
	d := &directory{}
	c.directories[at] = d
	for _, e := range entries {
		if !e.Dir && path.Base(e.Path) == "Chart.yaml" {
			d.chart = !c.isLibrary(e.Path)
			return nil
		}
	}
	for _, e := range entries {
		base := path.Base(e.Path)
		switch {
		case e.Dir && (strings.HasPrefix(base, ".") || passedOver[base]):
		case e.Dir:
			d.children = append(d.children, e.Path)
			if err := c.readDirectory(e.Path); err != nil {
				return err
			}
		case base == c.policyName:
			d.policy = true
		case slices.Contains(content.KustomizationNames(), base):
			d.kustomization = c.readKustomization(e.Path)
		case manifest.IsFileName(base):
			c.readManifests(at, d, e.Path)
		}
	}
	return nil
}

// isLibrary reports whether a chart only has templates for other charts.
func (c *contents) isLibrary(name string) bool {
	var chart struct {
		Type string `json:"type"`
	}
	return c.readYAML(name, &chart) && chart.Type == "library"
}

func (c *contents) readKustomization(name string) *kustomization {
	var k kustomization
	if !c.readYAML(name, &k) {
		return &kustomization{} // its build reports the error
	}
	return &k
}

// readYAML decodes a file, and reports whether that succeeded.
func (c *contents) readYAML(name string, into any) bool {
	text, err := c.reader.Read(name)
	return err == nil && len(text) <= maxFile && yaml.Unmarshal(text, into) == nil
}

// readManifests notes the objects of a file.
func (c *contents) readManifests(at string, d *directory, name string) {
	text, err := c.reader.Read(name)
	if err != nil || len(text) > maxFile {
		return
	}
	file, err := manifest.Parse(name, text)
	if err != nil {
		return
	}
	objects := 0
	c.readFluxSync(at, text, file.Docs)
	for _, doc := range file.Docs {
		meta, sure := doc.Scan()
		group, _, _ := strings.Cut(meta.APIVersion, "/")
		if !sure || !isOfCluster(meta) {
			continue
		}
		objects++
		c.hasClusters = c.hasClusters || isClusterOfArgo(doc, meta)
		switch {
		case group == "helm.toolkit.fluxcd.io" && meta.Kind == "HelmRelease", group == "argoproj.io" && (meta.Kind == "Application" || meta.Kind == "ApplicationSet"):
			if o, err := doc.Object(); err == nil {
				c.releases = append(c.releases, release{at, name, o})
			}
		case group == "kustomize.toolkit.fluxcd.io" && meta.Kind == "Kustomization":
			if o, err := doc.Object(); err == nil {
				c.kustomizations = append(c.kustomizations, release{at, name, o})
			}
		case group == artifact.Group && meta.Kind == artifact.Kind:
			if o, err := doc.Object(); err == nil {
				c.generators = append(c.generators, release{at, name, o})
			}
		case group == "source.toolkit.fluxcd.io":
			if o, err := doc.Object(); err == nil && artifact.HasOwnRoot(meta.Kind) {
				url, _ := child(o, "spec")["url"].(string)
				c.addresses[meta.Kind+" "+meta.Name] = url
			}
			key := meta.Kind + " " + meta.Name
			c.sources[key] = append(c.sources[key], at)
		}
	}
	if objects > 0 {
		d.manifests = append(d.manifests, name)
	}
}

// paths returns all directories in order.
func (c *contents) paths() []string { return slices.Sorted(maps.Keys(c.directories)) }

// coverReferences marks what kustomizations read.
func (s *survey) coverReferences() {
	for at, d := range s.directories {
		if d.kustomization == nil {
			continue
		}
		for _, ref := range slices.Concat(d.kustomization.Resources, d.kustomization.Bases, d.kustomization.Components) {
			s.cover(path.Join(at, ref))
		}
	}
}

// cover marks a file or directory. What is not in the tree is a remote base, or an error of the build.
func (s *survey) cover(name string) (found bool) {
	if d := s.directories[name]; d != nil {
		s.covered[name] = true
		return true
	}
	if _, err := fs.Stat(tree.FS(s.reader), name); err == nil {
		s.files[name] = true
		return true
	}
	return false
}

// reach returns the directories whose files the build of a directory reads: those that its kustomization names, or all below it.
func (c *contents) reach(at string) map[string]bool {
	out := map[string]bool{}
	var add func(at string)
	add = func(at string) {
		d := c.directories[at]
		if d == nil || out[at] {
			return
		}
		out[at] = true
		if d.kustomization == nil {
			for _, below := range d.children {
				add(below)
			}
			return
		}
		for _, ref := range slices.Concat(d.kustomization.Resources, d.kustomization.Bases, d.kustomization.Components) {
			if name := path.Join(at, ref); c.directories[name] != nil {
				add(name)
			} else {
				out[path.Dir(name)] = true
			}
		}
	}
	add(at)
	return out
}

// sourcesOf returns the directories outside of a build with the objects that its HelmReleases name as sources.
func (s *survey) sourcesOf(at string) []string {
	reached := s.reach(at)
	found := map[string]bool{}
	for _, one := range s.releasesOf(at) {
		visit(one.object["spec"], func(m map[string]any) {
			kind, _ := m["kind"].(string)
			name, _ := m["name"].(string)
			for _, dir := range s.sources[kind+" "+name] {
				if !reached[dir] {
					found[dir] = true
				}
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// visit calls do with each mapping in a value.
func visit(value any, do func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		do(v)
		for _, one := range v {
			visit(one, do)
		}
	case []any:
		for _, one := range v {
			visit(one, do)
		}
	}
}
