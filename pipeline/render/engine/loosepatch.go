// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
)

// loosePatch is a patch whose object may be among what was left out.
type loosePatch struct {
	file             string
	line             int
	kind, name, text string
}

// reportPatches notes the patches whose objects a build does not have.
func (l *leftOut) reportPatches(built resmap.ResMap) {
	for _, one := range l.patches {
		if slices.ContainsFunc(built.Resources(), func(object *resource.Resource) bool {
			return object.GetKind() == one.kind && strings.Contains(object.GetName(), one.name)
		}) {
			continue
		}
		l.add(one.file, one.line, "patches", "the patch of "+one.kind+" "+one.name, "its object is in nothing that was loaded")
		sum := sha256.Sum256([]byte(one.text))
		l.found[len(l.found)-1].Tags[render.TagDigest] = hex.EncodeToString(sum[:8])
	}
}

// loosenPatches has the patches of a kustomization apply to the objects that there are: with a target, one without objects is no error.
func (k *checkedTree) loosenPatches(file *reference.File, root *yaml.Node) {
	var patches []*yaml.Node
	kept := root.Content[:0:0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch strings.ToLower(key.Value) {
		case "patches", "patchesstrategicmerge":
			for _, item := range value.Content {
				patches = append(patches, k.loosened(file, item)...)
			}
			continue
		case "replacements", "vars":
			if k.leftOut.withoutReplacements {
				k.leftOut.add(file.Shown, key.Line, key.Value, key.Value, "they name what was not loaded")
				continue
			}
		}
		kept = append(kept, key, value)
	}
	if len(patches) > 0 {
		kept = append(kept, scalar("patches"), &yaml.Node{Kind: yaml.SequenceNode, Content: patches})
	}
	root.Content = kept
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// loosened returns a patch with the target that it names itself, one for each of its documents; one with a target as it is.
func (k *checkedTree) loosened(file *reference.File, item *yaml.Node) []*yaml.Node {
	if item.Kind == yaml.AliasNode {
		item = item.Alias
	}
	text := item.Value
	if item.Kind == yaml.MappingNode {
		if memberValue(item, "target") != nil {
			return []*yaml.Node{item}
		}
		if inline := memberValue(item, "patch"); inline != nil {
			text = inline.Value
		} else if at := memberValue(item, "path"); at != nil {
			text = at.Value
		}
	}
	if !strings.Contains(text, "\n") && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		content, err := k.Read(path.Join(path.Dir(file.Path), text))
		if err != nil {
			return []*yaml.Node{item}
		}
		text = string(content)
	}
	docs, err := parseDocuments([]byte(text))
	if err != nil {
		return []*yaml.Node{item}
	}
	var out []*yaml.Node
	for _, doc := range docs {
		kind, name := memberValue(doc, "kind"), memberValue(memberValue(doc, "metadata"), "name")
		one, err := yaml.Marshal(doc)
		if kind == nil || name == nil || err != nil {
			return []*yaml.Node{item}
		}
		k.leftOut.patches = append(k.leftOut.patches, loosePatch{file.Shown, item.Line, kind.Value, name.Value, string(one)})
		target := []*yaml.Node{scalar("kind"), scalar(kind.Value), scalar("name"), scalar(name.Value)}
		made := []*yaml.Node{scalar("patch"), scalar(string(one)), scalar("target"), {Kind: yaml.MappingNode, Content: target}}
		if options := memberValue(item, "options"); options != nil {
			made = append(made, scalar("options"), options)
		}
		out = append(out, &yaml.Node{Kind: yaml.MappingNode, Content: made})
	}
	return out
}
