// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// maxExplained bounds the kustomizations that are searched for the cause of an error.
const maxExplained = 200

// kustomizeExplainer searches kustomizations for what kustomize's message does not place: it names the files that it
// tried last, and not the line that names them, in the words of the library.
type kustomizeExplainer struct {
	files tree.Reader
	seen  map[string]bool
	// objects are the names of the objects in resources by kind.
	objects map[string][]string
	// within are the directories whose kustomizations name the one that is searched.
	within []string
	// cause is the message of kustomize.
	cause string
}

// explainKustomizeError returns the error of a build in a directory with the place of its cause, if that is found, and
// otherwise the error.
func explainKustomizeError(files tree.Reader, at string, err error) error {
	e := &kustomizeExplainer{files: files, seen: map[string]bool{}, objects: map[string][]string{}, cause: err.Error()}
	if found := e.search(path.Clean(at)); found != nil {
		return found
	}
	return errors.New(readableIDs(e.cause))
}

// kustomizationFile is a kustomization in its directory.
type kustomizationFile struct {
	dir, name string
	doc       *strict.Document
	top       map[string]any
}

// errorAt is an error about a field of the kustomization.
func (k *kustomizationFile) errorAt(at []any, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s: %s", k.name, k.doc.LineIn(at, 0), strict.FieldPath(at...), fmt.Sprintf(format, args...))
}

// search returns the first mistake in a kustomization and those that it names.
func (e *kustomizeExplainer) search(dir string) error {
	if e.seen[dir] || len(e.seen) == maxExplained {
		return nil
	}
	e.seen[dir] = true
	e.within = append(e.within, dir)
	defer func() { e.within = e.within[:len(e.within)-1] }()
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
	k := &kustomizationFile{dir: dir, name: name, doc: doc, top: top}
	for _, check := range []func(*kustomizationFile) error{checkKustomizationType, e.checkKustomizationFields, e.checkFiles, e.checkGenerators,
		e.checkPatches, e.checkReplicas, e.checkReplacements} {
		if err := check(k); err != nil {
			return err
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

// checkKustomizationType returns an error about the kind and apiVersion of a kustomization.
func checkKustomizationType(k *kustomizationFile) error {
	kinds := []string{types.KustomizationKind, types.ComponentKind}
	if kind, ok := k.top["kind"].(string); ok && !slices.Contains(kinds, kind) {
		return k.errorAt([]any{"kind"}, "must be Kustomization or Component, is %s%s", strict.Describe(kind), strict.DidYouMean(kind, kinds))
	}
	want := types.KustomizationVersion
	if k.top["kind"] == types.ComponentKind {
		want = types.ComponentVersion
	}
	if version, ok := k.top["apiVersion"].(string); ok && version != want && version != types.KustomizationVersion {
		return k.errorAt([]any{"apiVersion"}, "must be %s, is %s", want, strict.Describe(version))
	}
	return nil
}

// inlined are the types of kustomize with the fields of others in them, which package strict does not know.
var inlined = []string{"Selector", "SourceSelector", "TargetSelector", "ConfigMapArgs", "SecretArgs", "GeneratorArgs", "PatchTarget"}

// checkKustomizationFields returns an error about the first field that kustomize cannot read.
func (e *kustomizeExplainer) checkKustomizationFields(k *kustomizationFile) error {
	if !strings.Contains(e.cause, "json: ") && !strings.Contains(e.cause, "unknown field") {
		return nil
	}
	ps := &strict.Problems{}
	decoder := strict.Decoder{Optional: true, NullIsUnset: true, Open: inlined}
	top := maps.Clone(k.top)
	delete(top, "apiVersion")
	delete(top, "kind")
	decoder.Decode(nil, top, &types.Kustomization{}, ps)
	ps.Locate(k.doc)
	if len(ps.List) == 0 {
		return nil
	}
	first := ps.List[0]
	return fmt.Errorf("%s:%d: %s: %s", k.name, first.Line, first.Field(), first.Message)
}

// fileFields are the fields that list files, and pathFields those whose entries have one.
var (
	fileFields = []string{"resources", "bases", "components", "crds", "configurations", "patchesStrategicMerge", "transformers", "generators", "validators"}
	pathFields = []string{"patches", "patchesJson6902", "replacements"}
)

// checkFiles returns an error about the entries that name files and directories, and searches these.
func (e *kustomizeExplainer) checkFiles(k *kustomizationFile) error {
	for _, key := range fileFields {
		list, _ := k.top[key].([]any)
		for i, entry := range list {
			if entry == nil || entry == "" {
				return k.errorAt([]any{key, i}, "has no value; remove the dash, or name a file")
			}
			if first := slices.Index(list, entry); first < i && strings.Contains(e.cause, "already registered id") {
				return k.errorAt([]any{key, i}, "%v is listed twice, first in line %d", entry, k.doc.LineIn([]any{key, first}, 0))
			}
			if err := e.checkFile(k, entry, key, i); err != nil {
				return err
			}
		}
	}
	for _, key := range pathFields {
		list, _ := k.top[key].([]any)
		for i, entry := range list {
			one, _ := entry.(map[string]any)
			if err := e.checkFile(k, one["path"], key, i, "path"); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFile returns an error if an entry of a kustomization names a file that does not exist or that cannot be read, and
// searches the directory that it names.
func (e *kustomizeExplainer) checkFile(k *kustomizationFile, entry any, at ...any) error {
	text, ok := entry.(string)
	if !ok || text == "" || strings.Contains(text, "\n") || strings.Contains(text, ":") || strings.ContainsAny(text, "?{") ||
		strings.Contains(text, render.BasePrefix) {
		return nil // a patch in the kustomization itself, or a URL
	}
	file := path.Join(k.dir, text)
	info, err := e.files.Lookup(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.Contains(e.cause, path.Base(file)):
		return nil // kustomize found it somewhere else, such as on another server
	case errors.Is(err, fs.ErrNotExist):
		return k.errorAt(at, "%s: no such file%s", text, tree.SuggestPath(e.files, file))
	case err != nil:
		return nil
	case !info.Dir:
		return e.checkObjects(file, at[0] == "resources")
	}
	if slices.Contains(e.within, file) && strings.Contains(e.cause, "cycle") {
		what := "is this directory itself"
		if file != k.dir {
			what = "names this directory in turn"
		}
		return k.errorAt(at, "%s %s: a cycle; remove the entry", text, what)
	}
	name, content := e.readKustomization(file)
	if name == "" {
		return k.errorAt(at, "the directory %s has no kustomization.yaml", text)
	}
	if err := e.checkComponent(k, text, content, at); err != nil {
		return err
	}
	return e.search(file)
}

// checkComponent returns an error about a component among resources, or a kustomization among components.
func (e *kustomizeExplainer) checkComponent(k *kustomizationFile, text string, content []byte, at []any) error {
	if !strings.Contains(e.cause, "expected kind") {
		return nil
	}
	var named struct {
		Kind string `json:"kind"`
	}
	_ = yaml.Unmarshal(content, &named) // what cannot be read is reported where it is searched
	component := named.Kind == types.ComponentKind
	switch {
	case component && at[0] == "resources":
		return k.errorAt(at, "%s is a Component; name it in components", text)
	case !component && at[0] == "components":
		return k.errorAt(at, "%s is a Kustomization and not a Component; name it in resources", text)
	}
	return nil
}
