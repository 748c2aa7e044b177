// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// maxExplained bounds the kustomizations that are searched for the cause of an error.
const maxExplained = 200

// kustomizeExplainer searches kustomizations for what kustomize's message does not place: it names the files that it
// tried last, and not the line that names them.
type kustomizeExplainer struct {
	files tree.Reader
	seen  map[string]bool
	// cause is the message of kustomize.
	cause string
}

// explainKustomizeError returns the error of a build in a directory with the place of its cause, if that is found, and
// otherwise the error.
func explainKustomizeError(files tree.Reader, at string, err error) error {
	e := &kustomizeExplainer{files: files, seen: map[string]bool{}, cause: err.Error()}
	if found := e.search(path.Clean(at)); found != nil {
		return found
	}
	return err
}

// search returns the first mistake in a kustomization and those that it names.
func (e *kustomizeExplainer) search(dir string) error {
	if e.seen[dir] || len(e.seen) == maxExplained {
		return nil
	}
	e.seen[dir] = true
	name, text := e.readKustomization(dir)
	if name == "" {
		return nil
	}
	doc, err := strict.ReadOne(text, len(text))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	top, ok := doc.Value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: it is %s and not a kustomization", name, strict.Describe(doc.Value))
	}
	if strings.Contains(e.cause, "unknown field") {
		if err := checkKustomizationKeys(name, doc, top); err != nil {
			return err
		}
	}
	for _, key := range []string{"resources", "bases", "components", "crds", "configurations", "patchesStrategicMerge", "transformers", "generators", "validators"} {
		list, _ := top[key].([]any)
		for i, entry := range list {
			if err := e.checkFile(dir, name, doc, entry, key, i); err != nil {
				return err
			}
		}
	}
	for _, key := range []string{"patches", "patchesJson6902", "replacements"} {
		list, _ := top[key].([]any)
		for i, entry := range list {
			patch, _ := entry.(map[string]any)
			if err := e.checkFile(dir, name, doc, patch["path"], key, i, "path"); err != nil {
				return err
			}
			if err := e.checkPatch(dir, name, doc, patch, key, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// readKustomization returns the kustomization of a directory; its name is empty where there is none.
func (e *kustomizeExplainer) readKustomization(dir string) (name string, text []byte) {
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		name := path.Join(dir, base)
		if text, err := e.files.Read(name); err == nil {
			return name, text
		}
	}
	return "", nil
}

// checkKustomizationKeys returns an error about the first key that kustomize does not know.
func checkKustomizationKeys(name string, doc *strict.Document, top map[string]any) error {
	known := []string{"apiVersion", "kind"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[types.Kustomization]()) {
		if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); key != "" {
			known = append(known, key)
		}
	}
	first := ""
	for key := range top {
		if !slices.Contains(known, key) && (first == "" || doc.LineIn([]any{key}, 0) < doc.LineIn([]any{first}, 0)) {
			first = key
		}
	}
	if first == "" {
		return nil
	}
	return fmt.Errorf("%s:%d: %s: unknown field%s", name, doc.LineIn([]any{first}, 0), first, strict.DidYouMean(first, known))
}

// checkFile returns an error if an entry of a kustomization names a file that does not exist, and searches the
// directory that it names.
func (e *kustomizeExplainer) checkFile(dir, name string, doc *strict.Document, entry any, at ...any) error {
	text, ok := entry.(string)
	if !ok || text == "" || strings.Contains(text, "\n") || strings.Contains(text, ":") || strings.ContainsAny(text, "?{") ||
		strings.Contains(text, render.BasePrefix) {
		return nil // a patch in the kustomization itself, or a URL
	}
	file := path.Join(dir, text)
	info, err := e.files.Lookup(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.Contains(e.cause, path.Base(file)):
		return nil // kustomize found it somewhere else, such as on another server
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s:%d: %s: %s: no such file%s", name, doc.LineIn(at, 0), strict.FieldPath(at...), text, tree.SuggestPath(e.files, file))
	case err != nil || !info.Dir:
		return nil
	}
	if found, _ := e.readKustomization(file); found == "" {
		return fmt.Errorf("%s:%d: %s: the directory %s has no kustomization.yaml", name, doc.LineIn(at, 0), strict.FieldPath(at...), text)
	}
	return e.search(file)
}

// checkPatch returns an error about a patch that is not YAML, or the cause with the place of the JSON patch that has
// the path in it.
func (e *kustomizeExplainer) checkPatch(dir, name string, doc *strict.Document, patch map[string]any, key string, i int) error {
	text, _ := patch["patch"].(string)
	place := fmt.Sprintf("%s:%d: %s", name, doc.LineIn([]any{key, i}, 0), strict.FieldPath(key, i))
	if file, ok := patch["path"].(string); ok {
		data, err := e.files.Read(path.Join(dir, file))
		if err != nil {
			return nil //nolint:nilerr // checkFile reports it
		}
		text, place = string(data), path.Join(dir, file)
	}
	parsed, err := strict.ReadAll([]byte(text), len(text))
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	_, missing, ok := strings.Cut(e.cause, "missing path: ")
	if !ok {
		return nil
	}
	missing, _, _ = strings.Cut(missing, ":")
	for _, one := range parsed {
		operations, _ := one.Value.([]any)
		for n, operation := range operations {
			if o, _ := operation.(map[string]any); o["path"] == missing {
				return fmt.Errorf("%s: operation %d: the object that it changes has no %s: %s", place, n, missing, e.cause)
			}
		}
	}
	return nil
}
