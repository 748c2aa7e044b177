// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"path"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
)

// localConfig marks objects that are for tools and not for the cluster (kustomize, kpt).
const localConfig = "config.kubernetes.io/local-config"

// renderPlain reads every YAML and JSON file below the path, in the order of their names. It skips hidden files and
// directories, and objects that are not for a cluster.
func (w *renderWorker) renderPlain() ([]fn.Item, error) { return w.collectFiles(w.request.Path) }

// collectFiles reads files recursively.
func (w *renderWorker) collectFiles(dir string) ([]fn.Item, error) {
	list, err := w.files.List(dir)
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	for _, entry := range list {
		name := path.Join(dir, path.Base(entry.Path))
		if strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		if entry.Dir {
			below, err := w.collectFiles(name)
			if err != nil {
				return nil, err
			}
			items = append(items, below...)
			continue
		}
		switch path.Ext(name) {
		case ".yaml", ".yml", ".json":
			read, err := w.readFile(name, w.isClusterObject)
			if err != nil {
				return nil, err
			}
			items = append(items, read...)
		}
	}
	return items, nil
}

// readFile reads the objects of one file that are wanted.
func (w *renderWorker) readFile(name string, wanted func(*manifest.Document) (bool, error)) ([]fn.Item, error) {
	content, err := w.files.Read(name)
	if err != nil {
		return nil, err
	}
	file, err := manifest.Parse(name, content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var items []fn.Item
	for i, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		keep, err := wanted(doc)
		if err != nil {
			return nil, fmt.Errorf("reading %s:%d: %w", name, doc.Line(), err)
		}
		if keep {
			items = append(items, fn.Item{Doc: doc, Path: name, Index: i})
		}
	}
	return items, nil
}

// isClusterObject reports whether a document is for a cluster rather than for tools: kustomizations, Kptfiles, policies
// and objects that declare so themselves.
func (w *renderWorker) isClusterObject(doc *manifest.Document) (bool, error) {
	// A document that cannot be read must not be published, so each is.
	object, err := doc.Object()
	if err != nil {
		return false, err
	}
	meta := metaOf(object)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations[localConfig] == "true" {
		return false, nil
	}
	if meta.APIVersion == "" || meta.Kind == "" {
		return false, fmt.Errorf("an object needs apiVersion and kind")
	}
	group, _, _ := strings.Cut(meta.APIVersion, "/")
	return group != "kustomize.config.k8s.io" && group != "kpt.dev" && group != "prerig.dev", nil
}
