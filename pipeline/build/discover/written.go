// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"path"
	"slices"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Unrendered is what could not be rendered of a repository.
type Unrendered struct {
	// Directories are those that it would have been rendered from, with what would have rendered them, such as Application argocd/web;
	// "" for the build of the directory itself. Files may be among them.
	Directories map[string]string
	// Objects are the Applications and ApplicationSets, by kind and name, whose directories are looked for.
	Objects map[string]map[string]any
}

// Empty reports whether all could be rendered.
func (u Unrendered) Empty() bool { return len(u.Directories)+len(u.Objects) == 0 }

// FilesOf returns the files with objects of the cluster that would have been read, with what would have rendered them. Patches, values and
// the files of other tools are not among them, nor files that no kustomization lists.
func FilesOf(r tree.Reader, o Options, u Unrendered) (map[string]string, error) {
	s, err := newSurvey(r, o)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	add := func(at, owner string) {
		for _, name := range s.objectFiles(at) {
			if out[name] == "" {
				out[name] = owner
			}
		}
	}
	for name, object := range u.Objects {
		for _, at := range s.directoriesOf(object) {
			add(at, name)
		}
	}
	for at, owner := range u.Directories {
		add(at, owner)
	}
	return out, nil
}

// valuesFiles returns the values files of the charts of a kustomization in a directory.
func (k *kustomization) valuesFiles(dir string) (out []string) {
	for _, one := range k.HelmCharts {
		fields, _ := one.(map[string]any)
		more, _ := fields["additionalValuesFiles"].([]any)
		for _, value := range append(more, fields["valuesFile"]) {
			if name, _ := value.(string); name != "" {
				out = append(out, path.Join(dir, name))
			}
		}
	}
	return out
}

// filesBelow returns the files of a chart that may be YAML: what a change of them means is not known.
func (c *contents) filesBelow(at string) (out []string) {
	list, err := c.reader.List(at)
	if err != nil {
		return nil
	}
	for _, one := range list {
		if one.Dir {
			out = append(out, c.filesBelow(one.Path)...)
		} else if manifest.IsFileName(path.Base(one.Path)) {
			out = append(out, one.Path)
		}
	}
	return out
}

// objectFiles returns the files with objects that the build of a directory or a file reads.
func (c *contents) objectFiles(at string) (out []string) {
	if d := c.directories[path.Dir(at)]; d != nil && slices.Contains(d.manifests, at) {
		return []string{at}
	}
	if d := c.directories[at]; d != nil && d.chart {
		return c.filesBelow(at)
	}
	for dir := range c.reach(at) {
		d := c.directories[dir]
		switch {
		case d == nil:
		case d.kustomization == nil && c.directories[at] != nil && c.directories[at].kustomization == nil:
			out = append(out, d.manifests...)
		case d.kustomization != nil:
			out = append(out, d.kustomization.valuesFiles(dir)...)
			for _, ref := range d.kustomization.Resources {
				name := path.Join(dir, ref)
				if of := c.directories[path.Dir(name)]; of != nil && slices.Contains(of.manifests, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}
