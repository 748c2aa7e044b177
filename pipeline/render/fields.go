// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/prerig/prerig/pipeline/render/remotebase"
)

// kustomizationFile is one kustomization, read for what it names outside of itself.
type kustomizationFile struct {
	at    string // the file
	in    Base   // that it is in, none for the source
	from  string // the directory of the further source that it is in, "" for the pipeline's own
	shown string // the file, as messages have it
	doc   yaml.Node
	// remote are the entries that name repositories, local those that name files and directories of the same tree, where both
	// may be.
	remote, local []listEntry
}

// listEntry is one value of a list of a kustomization.
type listEntry struct {
	field string
	value string
	line  int
	node  *yaml.Node // nil where the document was let go of
	alias bool       // written as an alias, or with an anchor: it cannot be changed in its place alone
}

func newEntry(field string, node *yaml.Node, alias bool) listEntry {
	return listEntry{field, node.Value, node.Line, node, alias}
}

// Fields of a kustomization by what they name. kustomize does not tell upper from lower case in them.
var (
	rootFields    = []string{"resources", "bases", "components", "generators", "transformers", "validators"}
	inPlaceFields = []string{"generators", "transformers", "validators", "patchesstrategicmerge"}
	fileFields    = []string{"crds", "configurations", "patchesstrategicmerge"}
	objectFields  = []string{"patches", "patchesjson6902", "replacements", "openapi", "configmapgenerator", "secretgenerator"}
	pathKeys      = []string{"path", "files", "envs", "env"}
)

// parseKustomization reads a kustomization and refuses what would leave the tree that it is in, with the line that says
// so. Sources are the directories of further sources. It gives nil for what is no kustomization.
func parseKustomization(at string, in Base, sources []string, content []byte) (*kustomizationFile, error) {
	k := &kustomizationFile{at: at, in: in, shown: at, from: sourceOf(sources, at)}
	if in.Name != "" {
		k.shown = in.String() + strings.TrimPrefix(at, in.Name)
	}
	if err := yaml.Unmarshal(content, &k.doc); err != nil || len(k.doc.Content) == 0 || k.doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil //nolint:nilerr // kustomize says what is wrong with it
	}
	root := k.doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := k.checkField(root.Content[i], root.Content[i+1]); err != nil {
			return nil, err
		}
	}
	for _, e := range k.remote {
		if e.alias {
			return nil, k.refuseRemote(e, errors.New("written with an anchor or an alias; write it out"))
		}
	}
	return k, nil
}

func (k *kustomizationFile) checkField(key, value *yaml.Node) error {
	switch name := strings.ToLower(key.Value); {
	case slices.Contains(rootFields, name), slices.Contains(fileFields, name):
		return eachScalar(value, func(node *yaml.Node, alias bool) error { return k.checkEntry(newEntry(name, node, alias)) })
	case slices.Contains(objectFields, name):
		return k.checkPaths(name, value)
	}
	return nil
}

// checkPaths looks at path, files, envs and env of objects.
func (k *kustomizationFile) checkPaths(field string, node *yaml.Node) error {
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

// eachScalar goes through a value or a list, following aliases.
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
func (k *kustomizationFile) checkEntry(e listEntry) error {
	value := e.value
	inPlace := strings.Contains(value, "\n") || strings.HasPrefix(strings.TrimSpace(value), "{")
	if inPlace && (slices.Contains(inPlaceFields, e.field) || slices.Contains(objectFields, e.field)) {
		return nil
	}
	if _, file, found := strings.Cut(value, "="); found && (e.field == "configmapgenerator" || e.field == "secretgenerator") {
		value = file
	}
	mayBeRoot := slices.Contains(rootFields, e.field)
	switch {
	case mayBeRoot && remoteRoot(value):
		k.remote = append(k.remote, e)
	case remoteFile(value):
		return k.refuseRemote(e, errors.New("only a directory of a Git repository can be, under resources, components and bases"))
	case path.IsAbs(value):
		return fmt.Errorf("%s:%d: %s: %s is an absolute path; name files relative to the kustomization", k.shown, e.line, e.field, value)
	default:
		if mayBeRoot {
			k.local = append(k.local, e)
		}
		return k.checkContained(e, value, mayBeRoot)
	}
	return nil
}

// checkContained refuses entries that lead out of the tree: out of the source, out of a remote base's repository, or from one into
// another.
func (k *kustomizationFile) checkContained(e listEntry, value string, mayBeRoot bool) error {
	dir := path.Dir(k.at)
	target := path.Join(dir, value)
	first, _, _ := strings.Cut(target, "/")
	switch {
	case k.in.Name == "" && mayBeRoot && (target == ".." || strings.HasPrefix(target, "../")):
		return fmt.Errorf("%s:%d: %s: %s leads out of the source", k.shown, e.line, e.field, value)
	case mayBeRoot && k.leavesSource(value):
		return fmt.Errorf("%s:%d: %s: %s leads out of the source that is mounted at %s; only kustomizations of the pipeline's own source can name what another has", k.shown, e.line, e.field, value, k.from)
	case k.in.Name != "" && mayBeRoot && first != k.in.Name:
		return fmt.Errorf("%s:%d: %s: %s leads out of the repository of this remote base", k.shown, e.line, e.field, value)
	case first != k.in.Name && strings.HasPrefix(first, basePrefix):
		return fmt.Errorf("%s:%d: %s: %s is not a name that a source can use", k.shown, e.line, e.field, value)
	}
	return nil
}

// leavesSource reports whether an entry of a kustomization in a further source leads out of that source.
func (k *kustomizationFile) leavesSource(value string) bool {
	target := path.Join(path.Dir(k.at), value)
	return k.from != "" && target != k.from && !strings.HasPrefix(target, k.from+"/")
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

// refuseRemote says why a remote entry is not used.
func (k *kustomizationFile) refuseRemote(e listEntry, reason error) error {
	return fmt.Errorf("%s:%d: %s: %s is remote, and %w", k.shown, e.line, e.field, remotebase.Redacted(e.value), reason)
}

// checkComplete compares the remote entries that were found with those that kustomize itself reads, which knows ways to write
// them that are not followed here: what is not found cannot be checked, and is refused. It is for the renderer alone, as it
// replaces aliases by what they stand for.
func (k *kustomizationFile) checkComplete(content []byte) error {
	if k.from == "" && !bytes.ContainsAny(content, "@\\") && !bytes.Contains(content, []byte("://")) && !bytes.Contains(bytes.ToLower(content), []byte("github.com")) {
		return nil
	}
	var read types.Kustomization
	if err := read.Unmarshal(content); err != nil {
		return nil //nolint:nilerr // kustomize is going to say so
	}
	read.FixKustomization() // puts bases among resources
	left := map[string]int{}
	for _, e := range k.remote {
		left[e.value]++
	}
	for _, list := range [][]string{read.Resources, read.Components, read.Generators, read.Transformers, read.Validators} {
		for _, value := range list {
			if strings.Contains(value, "\n") {
				continue
			}
			if !remoteRoot(value) {
				if k.leavesSource(value) {
					return fmt.Errorf("%s: %s leads out of the source that is mounted at %s", k.shown, value, k.from)
				}
				continue
			}
			if left[value]--; left[value] < 0 {
				return fmt.Errorf("%s: %s is remote, and written in a way that cannot be followed; write it out under resources or components", k.shown, remotebase.Redacted(value))
			}
		}
	}
	return nil
}

// remoteFile reports whether kustomize would load a file over HTTP (api/internal/loader, IsRemoteFile).
func remoteFile(value string) bool {
	lower := strings.ToLower(value)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

var userAt = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// remoteRoot reports whether kustomize would take an entry for a Git repository, or load it over HTTP. It is a little wider:
// what only looks like one is not a path anybody uses.
func remoteRoot(value string) bool {
	lower := strings.ToLower(value)
	lower = strings.TrimPrefix(lower, "git::")
	for _, prefix := range []string{"ssh://", "https://", "http://", "file://", "git://", "github.com/", "github.com:", "gh:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return userAt.MatchString(lower) || strings.ContainsAny(value, ":@") && remotebase.Looks(value)
}

var userInfo = regexp.MustCompile(`//[^/@]*@`)

// withoutCredentials takes user and password out of a URL: messages end up in logs.
func withoutCredentials(value string) string { return userInfo.ReplaceAllString(value, "//") }
