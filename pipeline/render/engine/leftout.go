// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/fn/runtime/runtimeutil"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/render/remotebase"
)

// leftOut are the entries of kustomizations that a review leaves out, as they cannot be loaded: the rest is compared.
type leftOut struct {
	own   ownFunctions
	found []result.Result
	// loose has patches apply to what there is, and withoutReplacements leaves out replacements: what they name may be
	// in what is left out.
	loose, withoutReplacements bool
	patches                    []loosePatch
}

func newLeftOut(functions []string) *leftOut { return &leftOut{own: functions} }

// results returns a result for each entry that was left out.
func (l *leftOut) results() []result.Result {
	if l == nil {
		return nil
	}
	return l.found
}

// add notes an entry, once for each file. Lines of a file that is written again with other ones are those of the first.
func (l *leftOut) add(file string, line int, field, what, why string) {
	known := func(one result.Result) bool {
		return one.File.Path == file && one.Tags[render.TagReference] == what
	}
	if slices.ContainsFunc(l.found, known) {
		return
	}
	l.found = append(l.found, result.Result{
		Severity: result.Info, Message: fmt.Sprintf("%s: %s is left out of the comparison: %s", field, what, why),
		File: &result.File{Path: file, Line: line},
		Tags: map[string]string{result.TagCode: render.CodeNotLoaded, render.TagReference: what},
	})
}

// runLeniently runs kustomize. Where entries are left out, patches and replacements may miss their objects: then it runs
// again without those.
func (b *kustomizeBuild) runLeniently(ctx context.Context, files *checkedTree, at string,
	restrictions types.LoadRestrictions) (resmap.ResMap, error) {
	objects, err := b.run(ctx, files, at, restrictions)
	left := files.leftOut
	if err == nil || left == nil || len(left.found) == 0 {
		return objects, err
	}
	for _, loosen := range []*bool{&left.loose, &left.withoutReplacements} {
		*loosen, files.refused, left.patches = true, nil, nil
		again, failure := b.run(ctx, files, at, restrictions)
		if failure == nil {
			left.reportPatches(again)
			return again, nil
		}
	}
	return nil, err
}

// pluginKinds are the fields whose entries configure generators and the like.
var pluginKinds = []string{"generators", "transformers", "validators"}

// leaveOut takes out of a kustomization the dropped entries, and the plugins that are never run. It reports whether it
// changed anything.
func (k *checkedTree) leaveOut(file *reference.File, root *yaml.Node, dropped map[*yaml.Node]bool) (changed bool) {
	dir := path.Dir(file.Path)
	for i := 0; i+1 < len(root.Content); i += 2 {
		field, value := strings.ToLower(root.Content[i].Value), root.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if value.Kind != yaml.SequenceNode {
			continue
		}
		for _, item := range value.Content {
			if plugin := k.foreignPlugin(dir, field, item); plugin != "" {
				k.leftOut.add(file.Shown, item.Line, field, plugin, "plugins that a source names are never run")
				dropped[item] = true
			}
		}
		count := len(value.Content)
		value.Content = slices.DeleteFunc(value.Content, func(item *yaml.Node) bool { return k.isDropped(item, dropped) })
		changed = changed || len(value.Content) < count
		for _, item := range value.Content {
			k.replaceFiles(dir, item, dropped)
		}
	}
	if k.leftOut.loose {
		k.loosenPatches(file, root)
		changed = true
	}
	return changed
}

// isDropped reports whether an entry of a list names what is dropped, itself or as the path of a patch.
func (k *checkedTree) isDropped(item *yaml.Node, dropped map[*yaml.Node]bool) bool {
	if item.Kind == yaml.AliasNode {
		item = item.Alias
	}
	return dropped[item] || item.Kind == yaml.MappingNode && dropped[memberValue(item, "path")]
}

// replaceFiles has a generator read, in the place of a dropped file, one that holds its URL: another URL is another object then.
func (k *checkedTree) replaceFiles(dir string, item *yaml.Node, dropped map[*yaml.Node]bool) {
	for _, key := range []string{"files", "envs"} {
		list := memberValue(item, key)
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, entry := range list.Content {
			if !dropped[entry] {
				continue
			}
			name := k.virtualName(render.BaseFile)
			k.virtual[render.CleanPath(path.Join(dir, name))] = []byte("NOT_LOADED=" + shownReference(entry.Value) + "\n")
			k.names[name] = shownReference(entry.Value)
			if given, _, ok := strings.Cut(entry.Value, "="); ok && key == "files" && !strings.Contains(given, ":") {
				name = given + "=" + name
			} else if key == "files" {
				name = path.Base(entry.Value) + "=" + name
			}
			entry.Value, entry.Style, entry.Tag = name, yaml.DoubleQuotedStyle, "!!str"
		}
	}
}

// foreignPlugin returns the generator, transformer or validator of an entry that is neither kustomize's own nor Prerig's, "" for
// others.
func (k *checkedTree) foreignPlugin(dir, field string, item *yaml.Node) string {
	if !slices.Contains(pluginKinds, field) || item.Kind != yaml.ScalarNode {
		return ""
	}
	for _, text := range k.pluginTexts(dir, item.Value) {
		docs, err := parseDocuments(text)
		if err != nil {
			continue
		}
		for _, doc := range docs {
			var object struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string `yaml:"kind"`
				Metadata   struct {
					Name        string         `yaml:"name"`
					Annotations map[string]any `yaml:"annotations"`
				} `yaml:"metadata"`
			}
			if doc.Decode(&object) != nil || object.APIVersion == "builtin" || object.Kind == "Kustomization" {
				continue
			}
			_, isFunction := object.Metadata.Annotations[runtimeutil.FunctionAnnotationKey]
			if isFunction && k.leftOut.own.checkAnnotation(object.Metadata.Annotations) == nil {
				continue
			}
			return strings.TrimSpace(object.Kind + " " + object.Metadata.Name)
		}
	}
	return ""
}

// pluginTexts returns the configuration that an entry has in itself, or in the file or directory that it names.
func (k *checkedTree) pluginTexts(dir, entry string) (out [][]byte) {
	if strings.Contains(entry, "\n") || strings.HasPrefix(strings.TrimSpace(entry), "{") {
		return [][]byte{[]byte(entry)}
	}
	at := path.Join(dir, entry)
	info, err := k.Reader.Lookup(at)
	switch {
	case err != nil:
		return nil
	case !info.Dir:
		text, err := k.Reader.Read(at)
		if err == nil {
			out = append(out, text)
		}
		return out
	}
	entries, err := k.Reader.List(at)
	if err != nil {
		return nil
	}
	for _, one := range entries {
		if one.Dir || !manifest.IsFileName(path.Base(one.Path)) {
			continue
		}
		if text, err := k.Reader.Read(one.Path); err == nil {
			out = append(out, text)
		}
	}
	return out
}

// shownReference is an entry as a result names it: without credentials and what else a query may hold, but in full, as entries differ in
// versions.
func shownReference(entry string) string {
	address, _, _ := strings.Cut(entry, "?")
	const longest = 500
	shown := foreign.Head(withoutCredentials(address), longest)
	if _, query, found := strings.Cut(remotebase.Redacted(entry), "?"); found {
		shown += "?" + query
	}
	return shown
}
