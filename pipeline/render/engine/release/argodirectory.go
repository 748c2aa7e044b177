// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"errors"
	"path"
	"slices"

	"github.com/gobwas/glob"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// appDirectory are the options of a directory.
type appDirectory struct {
	Recurse                bool   `json:"recurse"`
	Include                string `json:"include"`
	Exclude                string `json:"exclude"`
	DisableExtensionFilter bool   `json:"disableExtensionFilter"`
}

// skipMarker has Argo CD pass over the file that contains it.
const skipMarker = "+argocd:skip-file-rendering"

// manifestExtensions are the files that Argo CD reads in a directory.
var manifestExtensions = []string{".yaml", ".yml", ".json", ".jsonnet"}

// renderDirectory reads the manifests of a directory.
func (r *appRender) renderDirectory(out *Rendered) error {
	options := r.source.Directory
	if options == nil {
		options = &appDirectory{}
	}
	patterns := map[string]glob.Glob{}
	for field, pattern := range map[string]string{"include": options.Include, "exclude": options.Exclude} {
		if pattern == "" {
			continue
		}
		compiled, err := glob.Compile(pattern)
		if err != nil {
			return errorAboutField(r.object, r.fieldOf("directory.%s", field), "%q is no pattern: %v", pattern, err)
		}
		patterns[field] = compiled
	}
	enter := func(name string) bool { return options.Recurse && !r.set.isLink(name) }
	return r.set.walkFiles(r.chart.path, enter, func(name string) error {
		relative := relativeTo(r.chart.path, name)
		extension := path.Ext(name)
		switch {
		case !options.DisableExtensionFilter && !slices.Contains(manifestExtensions, extension),
			patterns["exclude"] != nil && patterns["exclude"].Match(relative),
			patterns["include"] != nil && !patterns["include"].Match(relative):
			return nil
		case extension == ".jsonnet":
			return errorAboutField(r.object, r.at+".path", "%s is Jsonnet, which is not rendered; exclude it with directory.exclude and commit what it makes, %s", name, keepHint)
		}
		content, err := r.set.in.Files.Read(name)
		if err != nil {
			return errorAboutField(r.object, r.at+".path", "reading %s: %v", name, err)
		}
		if bytes.Contains(content, []byte(skipMarker)) {
			return nil
		}
		count, err := countObjects(name, content)
		switch {
		case err != nil && (count > 0 || looksLikeManifest(name, content)):
			return errorAboutField(r.object, r.at+".path", "reading %s: %v", name, err)
		case err != nil:
			out.Results = append(out.Results, Finding(result.Info, r.object, r.at+".path", name+" has no objects and is passed over, as Argo CD does: "+err.Error()))
		case count > 0:
			out.Manifests = append(out.Manifests, Manifest{Template: name, Path: name, YAML: string(content)})
		}
		return nil
	})
}

// looksLikeManifest reports whether Argo CD expects objects in a file. It passes over others, such as files of values.
func looksLikeManifest(name string, content []byte) bool {
	if path.Ext(name) == ".json" {
		return true
	}
	for _, key := range []string{"apiVersion:", "kind:", "metadata:"} {
		if !bytes.Contains(content, []byte(key)) {
			return false
		}
	}
	return true
}

// countObjects counts the objects of a file, up to the first that is none.
func countObjects(name string, content []byte) (int, error) {
	if err := checkAliases(content); err != nil {
		return 0, err
	}
	file, err := manifest.Parse(name, content)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		value, err := doc.Object()
		if err != nil {
			return count, err
		}
		if kind, _ := value["kind"].(string); kind == "" {
			return count, errors.New("an object needs apiVersion and kind")
		}
		count++
	}
	return count, nil
}
