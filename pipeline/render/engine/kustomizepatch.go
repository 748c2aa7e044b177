// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// resourceID is how kustomize's messages name an object: Deployment.v1.apps/web.[noNs].
var resourceID = lazyregexp.New(`\b([A-Z]\w*)\.(?:\[noVer\]|\w+)\.(?:\[noGrp\]|[\w.-]+)/([\w-]+)\.(\[noNs\]|[\w-]+)`)

var (
	// printedID is how Go prints the names in some of them, and printedGenerator a generator with its address.
	printedID        = lazyregexp.New(`(?:id )?resid\.ResId\{Gvk:resid\.Gvk\{[^}]*Kind:"(\w*)"[^}]*\}, Name:"([^"]*)", Namespace:"[^"]*"\}`)
	printedGenerator = lazyregexp.New(`from generator &\{0x[0-9a-f]+ <nil>\}`)
)

// readableIDs names objects as other messages do: Deployment web.
func readableIDs(text string) string {
	text = printedGenerator.ReplaceAllString(text, "the result of a generator")
	text = printedID.ReplaceAllString(text, "$1 $2")
	text = resourceID.ReplaceAllString(text, "$1 $3/$2")
	return strings.ReplaceAll(text, "[noNs]/", "")
}

// checkObjects returns an error about the objects in a file, and notes the names of those in resources.
func (e *kustomizeExplainer) checkObjects(file string, isResource bool) error {
	text, err := e.files.Read(file)
	if err != nil {
		return nil //nolint:nilerr // kustomize reports it
	}
	docs, err := strict.ReadAll(text, len(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, doc := range docs {
		object, ok := doc.Value.(map[string]any)
		if !ok || !isResource {
			continue
		}
		kind, name := nameOf(object)
		place := fmt.Sprintf("%s:%d", file, doc.Line())
		switch {
		case kind == "" && strings.Contains(e.cause, "missing kind"):
			return fmt.Errorf("%s: the object has no kind", place)
		case name == "" && strings.Contains(e.cause, "missing metadata.name") && !strings.HasSuffix(kind, "List"):
			return fmt.Errorf("%s: the %s has no metadata.name", place, kind)
		case object["apiVersion"] == nil && strings.Contains(e.cause, missingVersion):
			return fmt.Errorf("%s: the %s %s has no apiVersion", place, kind, name)
		case slices.Contains(e.objects[kind], name) && strings.Contains(e.cause, "already registered id: "+kind+".") && strings.Contains(e.cause, "/"+name+"."):
			return fmt.Errorf("%s: the %s %s is in another resource already; remove one of the two", place, kind, name)
		}
		e.objects[kind] = append(e.objects[kind], name)
	}
	return nil
}

// missingVersion is the cause of an object without apiVersion, which kustomize builds.
const missingVersion = "missing apiVersion"

// nameOf returns the kind and name of an object.
func nameOf(object map[string]any) (kind, name string) {
	kind, _ = object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ = metadata["name"].(string)
	return kind, name
}

// checkPatches returns an error about the patches of a kustomization.
func (e *kustomizeExplainer) checkPatches(k *kustomizationFile) error {
	for _, key := range []string{"patches", "patchesJson6902", "patchesStrategicMerge"} {
		list, _ := k.top[key].([]any)
		for i, entry := range list {
			patch, _ := entry.(map[string]any)
			if file, ok := entry.(string); ok {
				patch = map[string]any{"path": file}
				if strings.Contains(file, "\n") {
					patch = map[string]any{"patch": file}
				}
			}
			if err := e.checkPatch(k, patch, key, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPatch returns an error about one patch: one that is not YAML, or that kustomize's message is about.
func (e *kustomizeExplainer) checkPatch(k *kustomizationFile, patch map[string]any, key string, i int) error {
	text, _ := patch["patch"].(string)
	place := fmt.Sprintf("%s:%d: %s", k.name, k.doc.LineIn([]any{key, i}, 0), strict.FieldPath(key, i))
	inFile := false
	if file, ok := patch["path"].(string); ok {
		data, err := e.files.Read(path.Join(k.dir, file))
		if err != nil {
			return nil //nolint:nilerr // checkFile reports it
		}
		text, place, inFile = string(data), path.Join(k.dir, file), true
	}
	parsed, err := strict.ReadAll([]byte(text), len(text))
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	for _, one := range parsed {
		at := place
		if inFile {
			at = fmt.Sprintf("%s:%d", place, one.Line())
		}
		switch value := one.Value.(type) {
		case []any:
			if patch["target"] == nil && (strings.Contains(e.cause, "must specify a target") || strings.Contains(e.cause, "unable to parse SM or JSON patch")) {
				return fmt.Errorf("%s: a JSON patch needs a target, such as {kind: Deployment, name: web}", at)
			}
			if err := e.checkOperations(value, one, place, inFile); err != nil {
				return err
			}
		case map[string]any:
			if err := e.checkPatchedObject(value, at); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s: it is %s; a patch is an object with the changed fields, or a list of operations", at, strict.Describe(value))
		}
	}
	return nil
}

// checkPatchedObject returns an error about a strategic merge patch of an object that is not there.
func (e *kustomizeExplainer) checkPatchedObject(object map[string]any, at string) error {
	kind, name := nameOf(object)
	if !strings.Contains(e.cause, "no matches for Id "+kind+".") || !strings.Contains(e.cause, "/"+name+".") {
		return nil
	}
	metadata, _ := object["metadata"].(map[string]any)
	if slices.Contains(e.objects[kind], name) {
		return fmt.Errorf("%s: the patch is of %s %v/%s, and that of the resources has another namespace or apiVersion", at, kind, metadata["namespace"], name)
	}
	return fmt.Errorf("%s: the patch is of %s %s, which is not among the resources%s", at, kind, name, strict.DidYouMean(name, e.objects[kind]))
}

// patchOperations are those of JSON patches.
var patchOperations = []string{"add", "remove", "replace", "move", "copy", "test"}

// missingPath is the path in kustomize's messages about an operation on what is not there.
var missingPath = lazyregexp.New(`missing path: "?([^":]+)|error in \w+ for path: '([^']+)'|missing key: (/[^:]+)`)

// checkOperations returns an error about an operation of a JSON patch.
func (e *kustomizeExplainer) checkOperations(operations []any, doc *strict.Document, place string, inFile bool) error {
	var missing string
	if m := missingPath.FindStringSubmatch(e.cause); m != nil {
		missing = strings.TrimSpace(m[1] + m[2] + m[3])
	}
	for n, operation := range operations {
		at := fmt.Sprintf("%s: operation %d", place, n)
		if inFile {
			at = fmt.Sprintf("%s:%d: operation %d", place, doc.LineIn([]any{n}, 0), n)
		}
		o, _ := operation.(map[string]any)
		op, _ := o["op"].(string)
		if !slices.Contains(patchOperations, op) {
			return fmt.Errorf("%s: op: must be one of %s, is %s%s", at, strings.Join(patchOperations, ", "), strict.Describe(o["op"]),
				strict.DidYouMean(op, patchOperations))
		}
		pointer, ok := o["path"].(string)
		if !ok || pointer != "" && !strings.HasPrefix(pointer, "/") {
			return fmt.Errorf("%s: path: must begin with /, such as /spec/replicas, is %s", at, strict.Describe(o["path"]))
		}
		if missing != "" && pointer == missing {
			advice := "; add it with op: add"
			if op == "remove" {
				advice = "; remove the operation"
			}
			return fmt.Errorf("%s: the object that it changes has no %s%s", at, missing, advice)
		}
	}
	return nil
}

// scaled are the kinds that replicas changes.
var scaled = []string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"}

// checkReplicas returns an error about replicas of an object that is not there.
func (e *kustomizeExplainer) checkReplicas(k *kustomizationFile) error {
	list, _ := k.top["replicas"].([]any)
	for i, entry := range list {
		one, _ := entry.(map[string]any)
		name, _ := one["name"].(string)
		if !strings.Contains(e.cause, "resource with name "+name+" does not match") {
			continue
		}
		var known []string
		for _, kind := range scaled {
			known = append(known, e.objects[kind]...)
		}
		return k.errorAt([]any{"replicas", i, "name"}, "there is no Deployment, StatefulSet or ReplicaSet %s among the resources%s", name, strict.DidYouMean(name, known))
	}
	return nil
}

// checkReplacements returns an error about replacements from an object that is not there.
func (e *kustomizeExplainer) checkReplacements(k *kustomizationFile) error {
	list, _ := k.top["replacements"].([]any)
	for i, entry := range list {
		one, _ := entry.(map[string]any)
		source, _ := one["source"].(map[string]any)
		kind, _ := source["kind"].(string)
		name, _ := source["name"].(string)
		if field, _ := source["fieldPath"].(string); field != "" && strings.Contains(e.cause, "fieldPath `"+field+"` is missing for replacement source "+kind) {
			return k.errorAt([]any{"replacements", i, "source", "fieldPath"}, "%s %s has no field %s; correct the path, or set the field in the object", kind, name, field)
		}
		if source == nil || !strings.Contains(e.cause, "nothing selected by "+kind) || !strings.Contains(e.cause, name) {
			continue
		}
		return k.errorAt([]any{"replacements", i, "source"}, "there is no %s among the resources%s", strings.TrimSpace(kind+" "+name),
			strict.DidYouMean(name, e.objects[kind]))
	}
	return nil
}

// checkGenerators returns an error about the files and texts of generators of ConfigMaps and Secrets.
func (e *kustomizeExplainer) checkGenerators(k *kustomizationFile) error {
	if strings.Contains(e.cause, "does not exist; cannot merge or replace") {
		return e.checkMergedGenerators(k)
	}
	if !strings.Contains(e.cause, "loading KV pairs") {
		return nil
	}
	for _, key := range []string{"configMapGenerator", "secretGenerator"} {
		generators, _ := k.top[key].([]any)
		for i, entry := range generators {
			generator, _ := entry.(map[string]any)
			if err := e.checkGenerator(k, generator, key, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMergedGenerators returns an error about the generator that changes an object which is not there.
func (e *kustomizeExplainer) checkMergedGenerators(k *kustomizationFile) error {
	for key, kind := range map[string]string{"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"} {
		generators, _ := k.top[key].([]any)
		for i, entry := range generators {
			generator, _ := entry.(map[string]any)
			name, _ := generator["name"].(string)
			behavior, _ := generator["behavior"].(string)
			if behavior != "merge" && behavior != "replace" || !strings.Contains(e.cause, `"`+name+`"`) || !strings.Contains(e.cause, `"`+kind+`"`) {
				continue
			}
			return k.errorAt([]any{key, i, "behavior"}, "there is no %s %s among the resources to %s%s; add it to resources, or write behavior: create", kind, name,
				behavior, strict.DidYouMean(name, e.objects[kind]))
		}
	}
	return nil
}

func (e *kustomizeExplainer) checkGenerator(k *kustomizationFile, generator map[string]any, key string, i int) error {
	for _, field := range []string{"files", "envs"} {
		list, _ := generator[field].([]any)
		for n, entry := range list {
			text, _ := entry.(string)
			_, name, isNamed := strings.Cut(text, "=")
			if !isNamed || field == "envs" {
				name = text
			}
			if err := e.checkExists(k, name, key, i, field, n); err != nil {
				return err
			}
		}
	}
	literals, _ := generator["literals"].([]any)
	for n, entry := range literals {
		if text, _ := entry.(string); !strings.Contains(text, "=") {
			return k.errorAt([]any{key, i, "literals", n}, "must be KEY=VALUE, is %s", strict.Describe(entry))
		}
	}
	return nil
}

// checkExists returns an error about a file that does not exist.
func (e *kustomizeExplainer) checkExists(k *kustomizationFile, name string, at ...any) error {
	file := path.Join(k.dir, name)
	if _, err := e.files.Lookup(file); err == nil {
		return nil
	}
	return k.errorAt(at, "%s: no such file%s", name, tree.SuggestPath(e.files, file))
}
