// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/remotebase"
)

// File is a kustomization, read for what it names outside of itself.
type File struct {
	// Path is the file, and Shown the file as messages name it.
	Path, Shown string
	// In is the base that the file is in, the zero value for the source.
	In render.Base
	// From is the directory of the further source that the file is in, "" for the pipeline's own.
	From string
	// Doc is the decoded file.
	Doc yaml.Node
	// lenient has what cannot be loaded among Remote, and not refused.
	lenient bool
	// Remote are the entries that name repositories, Local those that name files and directories of the same tree, where both
	// may be.
	Remote, Local []Entry
}

// Entry is one value of a list of a kustomization.
type Entry struct {
	// Field, Value and Line are those of the entry.
	Field string
	Value string
	Line  int
	// Node is the value in the document, nil where the document was dropped.
	Node  *yaml.Node
	alias bool // written as an alias, or with an anchor: it cannot be changed in its place alone
}

func newEntry(field string, node *yaml.Node, alias bool) Entry {
	return Entry{field, node.Value, node.Line, node, alias}
}

// Fields of a kustomization, grouped by what they name. kustomize matches them case-insensitively.
var (
	rootFields    = []string{"resources", "bases", "components", "generators", "transformers", "validators"}
	pluginFields  = []string{"generators", "transformers", "validators"}
	inPlaceFields = []string{"generators", "transformers", "validators", "patchesstrategicmerge"}
	fileFields    = []string{"crds", "configurations", "patchesstrategicmerge"}
	objectFields  = []string{"patches", "patchesjson6902", "replacements", "openapi", "configmapgenerator", "secretgenerator"}
	pathKeys      = []string{"path", "files", "envs", "env"}
	// remoteFields may name files to load over HTTP. Keys of generators depend on the names of files, and are not among them.
	remoteFields = []string{"resources", "crds", "patches", "patchesjson6902", "patchesstrategicmerge"}
)

// Parse parses a kustomization and rejects references that leave its tree, naming the line. Sources are the
// directories of further sources. It returns nil if the content is not a kustomization.
func Parse(at string, in render.Base, sources []string, content []byte) (*File, error) {
	return parse(&File{Path: at, In: in, Shown: at, From: sourceOf(sources, at)}, content)
}

// ParseLenient parses a kustomization as Parse does. What is remote and cannot be loaded is among File.Remote, and no error.
func ParseLenient(at string, in render.Base, sources []string, content []byte) (*File, error) {
	return parse(&File{Path: at, In: in, Shown: at, From: sourceOf(sources, at), lenient: true}, content)
}

func parse(k *File, content []byte) (*File, error) {
	at, in := k.Path, k.In
	if in.Name != "" {
		k.Shown = in.String() + strings.TrimPrefix(at, in.Name)
	}
	if err := yaml.Unmarshal(content, &k.Doc); err != nil || len(k.Doc.Content) == 0 || k.Doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil //nolint:nilerr // kustomize reports what is wrong with it
	}
	root := k.Doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := k.checkField(root.Content[i], root.Content[i+1]); err != nil {
			return nil, err
		}
	}
	for _, e := range k.Remote {
		if e.alias && !k.lenient {
			return nil, k.RefuseRemote(e, errors.New("written with an anchor or an alias; write it out"))
		}
	}
	return k, nil
}

func (k *File) checkField(key, value *yaml.Node) error {
	name := strings.ToLower(key.Value)
	switch {
	case slices.Contains(rootFields, name), slices.Contains(fileFields, name):
		return eachScalar(value, func(node *yaml.Node, alias bool) error { return k.checkEntry(newEntry(name, node, alias)) })
	case slices.Contains(objectFields, name):
		return k.checkPaths(name, value)
	}
	return nil
}

// HasPlugins reports whether a kustomization lists generators, transformers or validators, whose own files may name others.
func (k *File) HasPlugins() bool {
	root := k.Doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		name := strings.ToLower(root.Content[i].Value)
		if slices.Contains(pluginFields, name) && len(root.Content[i+1].Content) > 0 {
			return true
		}
	}
	return false
}

// checkPaths looks at path, files, envs and env of objects.
func (k *File) checkPaths(field string, node *yaml.Node) error {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind == yaml.SequenceNode {
		for _, item := range node.Content {
			if err := k.checkPaths(field, item); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if !slices.Contains(pathKeys, strings.ToLower(node.Content[i].Value)) {
			continue
		}
		err := eachScalar(node.Content[i+1], func(node *yaml.Node, alias bool) error { return k.checkEntry(newEntry(field, node, alias)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// eachScalar walks a value or a list, following aliases.
func eachScalar(node *yaml.Node, f func(node *yaml.Node, alias bool) error) error {
	alias := node.Anchor != ""
	if node.Kind == yaml.AliasNode {
		node, alias = node.Alias, true
	}
	if node.Kind == yaml.ScalarNode {
		return f(node, alias)
	}
	for _, item := range node.Content {
		one := alias || item.Anchor != ""
		if item.Kind == yaml.AliasNode {
			item, one = item.Alias, true
		}
		if node.Kind == yaml.SequenceNode && item.Kind == yaml.ScalarNode {
			if err := f(item, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEntry looks at one entry that names a file, a directory or a repository.
func (k *File) checkEntry(e Entry) error {
	value := e.Value
	inPlace := strings.Contains(value, "\n") || strings.HasPrefix(strings.TrimSpace(value), "{")
	if inPlace && (slices.Contains(inPlaceFields, e.Field) || slices.Contains(objectFields, e.Field)) {
		return nil
	}
	if _, file, found := strings.Cut(value, "="); found && (e.Field == "configmapgenerator" || e.Field == "secretgenerator") {
		value = file
	}
	mayBeRoot := slices.Contains(rootFields, e.Field)
	switch {
	case slices.Contains(remoteFields, e.Field) && remotebase.IsFile(value), k.lenient && isOverHTTP(value):
		k.Remote = append(k.Remote, e)
	case isOverHTTP(value) && (!mayBeRoot || remotebase.IsFile(value)):
		return k.RefuseRemote(e, fmt.Errorf("only a file under %s can be, and a directory of a Git repository under resources, components and bases", strings.Join(remoteFields, ", ")))
	case mayBeRoot && IsRemote(value):
		k.Remote = append(k.Remote, e)
	case path.IsAbs(value):
		return fmt.Errorf("%s:%d: %s: %s is an absolute path; name files relative to the kustomization", k.Shown, e.Line, e.Field, value)
	default:
		if mayBeRoot {
			k.Local = append(k.Local, e)
		}
		return k.checkContained(e, value, mayBeRoot)
	}
	return nil
}

// checkContained refuses entries that lead out of the tree: out of the source, out of a remote base's repository, or from one into
// another.
func (k *File) checkContained(e Entry, value string, mayBeRoot bool) error {
	dir := path.Dir(k.Path)
	target := path.Join(dir, value)
	first, _, _ := strings.Cut(target, "/")
	switch {
	case k.In.Name == "" && (target == ".." || strings.HasPrefix(target, "../")):
		return fmt.Errorf("%s:%d: %s: %s leads out of the source", k.Shown, e.Line, e.Field, value)
	case mayBeRoot && k.LeavesSource(value):
		return fmt.Errorf("%s:%d: %s: %s leads out of the source that is mounted at %s; only kustomizations of the pipeline's own source can name what another has", k.Shown, e.Line, e.Field, value, k.From)
	case k.In.Name != "" && first != k.In.Name:
		return fmt.Errorf("%s:%d: %s: %s leads out of the repository of this remote base", k.Shown, e.Line, e.Field, value)
	case first != k.In.Name && strings.HasPrefix(first, render.BasePrefix):
		return fmt.Errorf("%s:%d: %s: %s is not a name that a source can use", k.Shown, e.Line, e.Field, value)
	}
	return nil
}

// LeavesSource reports whether an entry of a kustomization in a further source leads out of that source.
func (k *File) LeavesSource(value string) bool {
	target := path.Join(path.Dir(k.Path), value)
	return k.From != "" && target != k.From && !strings.HasPrefix(target, k.From+"/")
}

// sourceOf returns the directory of the further source that a file is in, "" for the pipeline's own.
func sourceOf(sources []string, at string) string {
	for _, dir := range sources {
		if strings.HasPrefix(at, dir+"/") {
			return dir
		}
	}
	return ""
}

// RefuseRemote returns the error that explains why a remote entry is not used.
func (k *File) RefuseRemote(e Entry, reason error) error {
	return fmt.Errorf("%s: %s is remote, and %w", k.where(e), remotebase.Redacted(e.Value), reason)
}

// where is the place of an entry, for messages.
func (k *File) where(e Entry) string { return fmt.Sprintf("%s:%d: %s", k.Shown, e.Line, e.Field) }

// isOverHTTP reports whether kustomize would try to load an entry over HTTP (api/internal/loader, IsRemoteFile).
func isOverHTTP(value string) bool {
	lower := strings.ToLower(value)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

var userAt = lazyregexp.New(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// IsRemote reports whether kustomize would read an entry as a Git repository, or load it over HTTP. It is slightly wider: an entry that
// only resembles one is not a usual path.
func IsRemote(value string) bool {
	lower := strings.ToLower(value)
	lower = strings.TrimPrefix(lower, "git::")
	for _, prefix := range []string{"ssh://", "https://", "http://", "file://", "git://", "github.com/", "github.com:", "gh:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return userAt.MatchString(lower) || strings.ContainsAny(value, ":@") && remotebase.Looks(value)
}
