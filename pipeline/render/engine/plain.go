// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/source/content"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// localConfig marks objects that are for tools and not for the cluster (kustomize, kpt).
const localConfig = "config.kubernetes.io/local-config"

// renderPlain reads every YAML and JSON file below the path, in the order of their names. It skips hidden files and
// directories, objects that are not for a cluster, and with a warning the files that hold no objects. The path may also be a file.
func renderPlain(files tree.Reader, at string, warn func(string)) ([]fn.Item, error) {
	if info, err := files.Lookup(at); err == nil && !info.Dir {
		return readFile(files, at, isClusterObject)
	}
	return collectFiles(files, at, warn)
}

// collectFiles reads the objects below a directory, and warns of what it skips.
func collectFiles(files tree.Reader, dir string, warn func(string)) ([]fn.Item, error) {
	exists := func(name string) bool {
		_, err := files.Lookup(name)
		return err == nil
	}
	c := &plainCollector{files: files, index: &content.Index{Exists: exists, Read: files.Read}}
	items, err := c.collectBelow(dir)
	if err != nil {
		return nil, err
	}
	var notes []string
	for _, note := range content.Notes(c.skipped, (*content.Reason).BuildAdvice) {
		notes = append(notes, note.Message)
	}
	if len(items) == 0 && len(notes) > 0 {
		return nil, fmt.Errorf("there is no object: %s", strings.Join(notes, "; "))
	}
	for _, note := range notes {
		warn(note)
	}
	return items, nil
}

// plainCollector collects the objects of files.
type plainCollector struct {
	files   tree.Reader
	index   *content.Index
	skipped []content.Skipped
}

func (c *plainCollector) collectBelow(dir string) ([]fn.Item, error) {
	list, err := c.files.List(dir)
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	for _, entry := range list {
		name := path.Join(dir, path.Base(entry.Path))
		if strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		var below []fn.Item
		switch {
		case entry.Dir:
			below, err = c.collectBelow(name)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)):
			below, err = c.collectFile(name)
		}
		if err != nil {
			return nil, err
		}
		items = append(items, below...)
	}
	return items, nil
}

// collectFile reads the objects of one file, and skips what the commands over files skip.
func (c *plainCollector) collectFile(name string) ([]fn.Item, error) {
	if why, up := c.index.ReasonToSkip(path.Join("/", name)); why != nil {
		place := name
		if up > 0 {
			place = path.Join(path.Dir(name), strings.Repeat("../", up)) + "/"
		}
		c.skipped = append(c.skipped, content.Skipped{Reason: why, Place: place})
		return nil, nil
	}
	text, err := c.files.Read(name)
	if err != nil {
		return nil, err
	}
	file, err := manifest.Parse(name, text)
	if err != nil {
		found := content.RecognizeBroken(name, string(text), err)
		if err = c.skipDocument(name, string(text), found, err); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		return nil, nil
	}
	return readItems(file, name, func(doc *manifest.Document) (bool, error) {
		found := content.Recognize(doc)
		if found.Err == nil && (found.Reason == nil || found.Reason.IsWhole()) {
			return isClusterObject(doc)
		}
		_, err := doc.Object()
		return false, c.skipDocument(name, doc.Text(), found, err)
	})
}

// skipDocument notes that something is skipped. It returns an error for what seems to be an object: without it, the object
// would be removed from what is published.
func (c *plainCollector) skipDocument(name, text string, found content.Finding, err error) error {
	switch {
	case found.Err != nil:
		return found.Err
	case err != nil && (found.Reason.IsObject(text) || strings.HasPrefix(text, string(pointerStart))):
		return err
	case found.Reason.IsObject(text):
		return fmt.Errorf("it is a %s; %s", found.Reason.One, found.Reason.BuildAdvice())
	}
	last := len(c.skipped) - 1
	if one := (content.Skipped{Reason: found.Reason, Place: name}); last < 0 || c.skipped[last] != one {
		c.skipped = append(c.skipped, one)
	}
	return nil
}

// readFile reads the objects of one file that are wanted.
func readFile(files tree.Reader, name string, wanted func(*manifest.Document) (bool, error)) ([]fn.Item, error) {
	text, err := files.Read(name)
	if err != nil {
		return nil, err
	}
	file, err := manifest.Parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return readItems(file, name, wanted)
}

// readItems returns the documents of a file that are wanted.
func readItems(file *manifest.File, name string, wanted func(*manifest.Document) (bool, error)) ([]fn.Item, error) {
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
func isClusterObject(doc *manifest.Document) (bool, error) {
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
