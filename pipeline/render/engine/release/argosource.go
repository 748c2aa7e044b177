// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/prerig/prerig/fn/podmap"
)

// sourceKinds are the fields of a source that say how it is rendered.
var sourceKinds = []string{"kustomize", "helm", "directory", "plugin"}

// render renders the source. The kind is the one that it names, or else depends on the files in its directory.
func (r *appRender) render(ctx context.Context, out *Rendered) error {
	if r.source.Chart != "" || strings.HasPrefix(r.source.RepoURL, "oci://") {
		return r.renderChart(ctx, out)
	}
	if err := r.findDirectory(); err != nil {
		return err
	}
	out.Unit.Directories = append(out.Unit.Directories, r.chart.path)
	if err := r.mergeSourceFiles(); err != nil {
		return err
	}
	kind, err := r.kindOfSource()
	if err != nil {
		return err
	}
	switch kind {
	case "plugin":
		return errorAboutField(r.object, r.at+".plugin", "cannot be rendered, as plugins of Argo CD are programs beside it; render what it makes by a pipeline of its own, %s", keepHint)
	case "helm":
		return r.renderChart(ctx, out)
	case "kustomize":
		return r.renderKustomization(ctx, out)
	}
	return r.renderDirectory(out)
}

// findDirectory finds the directory of the source in the tree.
func (r *appRender) findDirectory() error {
	if r.source.TagPrefix != "" {
		return errorAboutField(r.object, r.at+".tagPrefix", "cannot be resolved in the tree; %s", repositoryHint)
	}
	root, reason := r.set.findRevision(r.source.RepoURL, r.source.TargetRevision)
	if reason != "" {
		return errorAboutField(r.object, r.at+".repoURL", "%s", reason)
	}
	r.chart = foundChart{of: r.object, field: r.at + ".path", root: root, path: path.Join(root, path.Join("/", r.source.Path))}
	if info, err := r.set.in.Files.Lookup(r.chart.path); err != nil || !info.Dir {
		return errorAboutField(r.object, r.at+".path", "%s is no directory in the tree", r.source.Path)
	}
	return nil
}

// mergeSourceFiles merges the files .argocd-source.yaml and .argocd-source-NAME.yaml of the directory into the source.
func (r *appRender) mergeSourceFiles() error {
	for _, name := range []string{".argocd-source.yaml", ".argocd-source-" + r.app.Metadata.Name + ".yaml"} {
		content, err := r.set.in.Files.Read(path.Join(r.chart.path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		patch := map[string]any{}
		if err == nil {
			err = readYAML(content, &patch)
		}
		if err != nil {
			return errorAboutField(r.object, r.at+".path", "reading %s: %v", path.Join(r.chart.path, name), err)
		}
		for _, field := range []string{"repoURL", "path", "targetRevision", "chart"} {
			delete(patch, field)
		}
		r.raw = mergeMaps(r.raw, patch)
	}
	text, err := json.Marshal(r.raw)
	if err != nil {
		return err
	}
	r.source = appSource{}
	if err := json.Unmarshal(text, &r.source); err != nil {
		return errorAboutField(r.object, r.at, "cannot be read with the files .argocd-source*.yaml of %s: %v", r.source.Path, err)
	}
	return nil
}

// kindOfSource returns the kind of the source: helm, kustomize, directory or plugin.
func (r *appRender) kindOfSource() (string, error) {
	var given []string
	for _, kind := range sourceKinds {
		if options, ok := r.raw[kind].(map[string]any); ok && (kind == "plugin" || !hasOnlyZeros(options)) {
			given = append(given, kind)
		}
	}
	switch {
	case len(given) > 1:
		return "", errorAboutField(r.object, r.at, "has %s, and Argo CD accepts one of them only", strings.Join(given, " and "))
	case len(given) == 1:
		return given[0], nil
	case r.hasFile(konfig.RecognizedKustomizationFileNames()...):
		return "kustomize", nil
	case r.hasFile("Chart.yaml"):
		return "helm", nil
	}
	return "directory", nil
}

// hasOnlyZeros reports whether options say nothing, which Argo CD treats as if they were not given.
func hasOnlyZeros(options map[string]any) bool {
	for _, key := range podmap.SortedKeys(options) {
		if inner, ok := options[key].(map[string]any); !isZero(options[key]) && !(ok && hasOnlyZeros(inner)) {
			return false
		}
	}
	return true
}

// hasFile reports whether the directory of the source has one of the files.
func (r *appRender) hasFile(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := r.set.in.Files.Lookup(path.Join(r.chart.path, name))
		return err == nil
	})
}

// walkFiles calls do for every file below a directory, in the order of their names. It enters the directories that enter accepts.
func (s *Set) walkFiles(dir string, enter func(name string) bool, do func(name string) error) error {
	list, err := s.in.Files.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range list {
		name := path.Join(dir, path.Base(entry.Path))
		switch {
		case !entry.Dir:
			err = do(name)
		case enter(name):
			err = s.walkFiles(name, enter, do)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isLink reports whether a path, whose directory is none, is a symbolic link.
func (s *Set) isLink(name string) bool {
	info, err := s.in.Files.Lookup(name)
	if err != nil {
		return true
	}
	above, err := s.in.Files.Lookup(path.Dir(name))
	return err != nil || info.Path != path.Join(above.Path, path.Base(name))
}

// fieldOf names a field of the source.
func (r *appRender) fieldOf(format string, args ...any) string {
	return r.at + "." + fmt.Sprintf(format, args...)
}
