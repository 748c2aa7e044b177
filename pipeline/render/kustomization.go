// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// kustomizations is the tree as kustomize sees it: every kustomization that is read is checked, and its transformers that
// are Prerig's own function are put in a form that kustomize runs without a plugin.
type kustomizations struct {
	tree.Reader
	virtual map[string][]byte // files that are not in the source
	names   map[string]string // names of virtual files to what they stand for
	refused error             // the first hard error: kustomize drops some on its way
	count   int
}

func newKustomizations(r tree.Reader) *kustomizations {
	return &kustomizations{Reader: r, virtual: map[string][]byte{}, names: map[string]string{}}
}

// clean gives a path as virtual files are kept: relative to the root.
func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// hard remembers an error that is more than a missing file.
func (k *kustomizations) hard(err error) error {
	if err != nil && k.refused == nil && !errors.Is(err, fs.ErrNotExist) {
		k.refused = err
	}
	return err
}

// Lookup implements tree.Reader.
func (k *kustomizations) Lookup(name string) (tree.Info, error) {
	at := clean(name)
	if _, ok := k.virtual[at]; ok {
		return tree.Info{Path: at}, nil
	}
	if _, ok := k.virtual[path.Join(at, konfig.DefaultKustomizationFileName())]; ok {
		return tree.Info{Path: at, Dir: true}, nil
	}
	info, err := k.Reader.Lookup(name)
	return info, k.hard(err)
}

// List implements tree.Reader.
func (k *kustomizations) List(name string) ([]tree.Info, error) {
	list, err := k.Reader.List(name)
	return list, k.hard(err)
}

// Read implements tree.Reader.
func (k *kustomizations) Read(name string) ([]byte, error) {
	at := clean(name)
	if content, ok := k.virtual[at]; ok {
		return content, nil
	}
	if strings.Contains(at, virtualPrefix) {
		return nil, &fs.PathError{Op: "reading", Path: name, Err: fs.ErrNotExist}
	}
	content, err := k.Reader.Read(name)
	if err != nil {
		// A directory is read as a file first, whenever a kustomization names one.
		if info, lookup := k.Reader.Lookup(name); lookup == nil && info.Dir {
			return nil, err
		}
		return nil, k.hard(err)
	}
	if err := checkAliases(content); err != nil {
		return nil, k.hard(fmt.Errorf("%s: %w", at, err))
	}
	if !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(at)) {
		return content, nil
	}
	checked, err := k.kustomization(at, content)
	return checked, k.hard(err)
}

// kustomization checks one file and gives it as kustomize is to read it. What is not YAML is left to kustomize to
// complain about.
func (k *kustomizations) kustomization(at string, content []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return content, nil
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := checkField(at, root.Content[i], root.Content[i+1]); err != nil {
			return nil, err
		}
	}
	changed := false
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "transformers" || root.Content[i+1].Kind != yaml.SequenceNode {
			continue
		}
		for _, entry := range root.Content[i+1].Content {
			replaced, err := k.transformer(path.Dir(at), entry.Value)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: transformers: %w", at, entry.Line, err)
			}
			if replaced != entry.Value {
				entry.Value, changed = replaced, true
				if entry.Style != yaml.LiteralStyle && entry.Style != yaml.FoldedStyle {
					entry.Style = yaml.DoubleQuotedStyle
				}
			}
		}
	}
	if !changed {
		return content, nil
	}
	return yaml.Marshal(&doc)
}

// Fields of a kustomization by what they name.
var (
	rootFields = []string{"resources", "bases", "components", "generators", "transformers", "validators"}
	fileFields = []string{"crds", "configurations", "patchesStrategicMerge"}
	helmFields = []string{"helmCharts", "helmChartInflationGenerator", "helmGlobals"}
	pathKeys   = []string{"path", "files", "envs", "env"}
)

// checkField refuses what would leave the tree, with the line that says so.
func checkField(at string, key, value *yaml.Node) error {
	switch name := key.Value; {
	case slices.Contains(helmFields, name):
		return fmt.Errorf("%s:%d: %s: Helm charts are not rendered, as that runs the helm command; commit the output of helm template instead", at, key.Line, name)
	case slices.Contains(rootFields, name):
		return eachScalar(value, func(entry *yaml.Node) error { return checkEntry(at, name, entry, true) })
	case slices.Contains(fileFields, name):
		return eachScalar(value, func(entry *yaml.Node) error { return checkEntry(at, name, entry, false) })
	case name == "patches" || name == "patchesJson6902" || name == "replacements" || name == "openapi" ||
		name == "configMapGenerator" || name == "secretGenerator":
		return checkPaths(at, name, value)
	}
	return nil
}

// checkPaths looks at path, files, envs and env of objects.
func checkPaths(at, field string, node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		for _, item := range node.Content {
			if err := checkPaths(at, field, item); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if !slices.Contains(pathKeys, node.Content[i].Value) {
			continue
		}
		err := eachScalar(node.Content[i+1], func(entry *yaml.Node) error {
			return checkEntry(at, field, entry, false)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func eachScalar(node *yaml.Node, f func(*yaml.Node) error) error {
	switch node.Kind {
	case yaml.ScalarNode:
		return f(node)
	case yaml.SequenceNode:
		for _, item := range node.Content {
			if item.Kind == yaml.ScalarNode {
				if err := f(item); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkEntry looks at one entry that names a file, a directory or a repository.
func checkEntry(at, field string, entry *yaml.Node, mayBeRoot bool) error {
	value := entry.Value
	if strings.Contains(value, "\n") || strings.HasPrefix(strings.TrimSpace(value), "{") {
		return nil // written in place
	}
	if _, file, found := strings.Cut(value, "="); found && (field == "configMapGenerator" || field == "secretGenerator") {
		value = file
	}
	switch {
	case remoteFile(value) || mayBeRoot && remoteRoot(value):
		return fmt.Errorf("%s:%d: %s: %s is remote; a render uses no network, so copy it into the source (or add it as a Git submodule)", at, entry.Line, field, withoutCredentials(value))
	case path.IsAbs(value):
		return fmt.Errorf("%s:%d: %s: %s is an absolute path; name files relative to the kustomization", at, entry.Line, field, value)
	}
	return nil
}

// remoteFile says whether kustomize would load a file over HTTP (api/internal/loader, IsRemoteFile).
func remoteFile(value string) bool {
	lower := strings.ToLower(value)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

var userAt = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// remoteRoot says whether kustomize would take an entry for a Git repository (api/internal/git, NewRepoSpecFromURL: a
// scheme, a user or GitHub's name in front). It is a little wider: what only looks like one is not a path anybody uses.
func remoteRoot(value string) bool {
	lower := strings.ToLower(value)
	lower = strings.TrimPrefix(lower, "git::")
	for _, prefix := range []string{"ssh://", "https://", "http://", "file://", "git://", "github.com/", "github.com:", "gh:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return userAt.MatchString(value)
}

var userInfo = regexp.MustCompile(`//[^/@]*@`)

// withoutCredentials takes user and password out of a URL: messages end up in logs.
func withoutCredentials(value string) string { return userInfo.ReplaceAllString(value, "//") }

// explain puts the names of the source into an error of kustomize.
func (k *kustomizations) explain(err error) error {
	text := string(k.restore([]byte(err.Error())))
	if strings.Contains(text, "external plugins disabled") {
		text += "; functions and plugins that a source names are never run, and Prerig's own function runs under transformers only"
	}
	return errors.New(text)
}

// restore replaces the names of virtual files by what they stand for.
func (k *kustomizations) restore(text []byte) []byte {
	if !bytes.Contains(text, []byte(virtualPrefix)) {
		return text
	}
	for name, original := range k.names {
		text = bytes.ReplaceAll(text, []byte(name), []byte(original))
	}
	return text
}

// maxExpanded bounds the number of values in a document whose aliases are replaced by what they stand for. kustomize
// replaces them, and some of its ways to read a file set no bound.
const maxExpanded = 1_000_000

// checkAliases refuses documents that grow too large. Files without anchors and aliases cost two searches.
func checkAliases(content []byte) error {
	if !bytes.ContainsRune(content, '&') || !bytes.ContainsRune(content, '*') {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var doc yaml.Node
		if err := decoder.Decode(&doc); err != nil {
			return nil // the end, or no YAML: kustomize will say so where it matters
		}
		if expanded(&doc, map[*yaml.Node]int{}) > maxExpanded {
			return fmt.Errorf("line %d: excessive aliasing: the document's aliases stand for more than %d values", max(doc.Line, 1), maxExpanded)
		}
	}
}

// expanded counts the values of a node. A number over the bound is not exact.
func expanded(node *yaml.Node, known map[*yaml.Node]int) int {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if count, ok := known[node]; ok {
		return count
	}
	known[node] = maxExpanded + 1 // an alias inside of what it stands for
	count := 1
	for _, child := range node.Content {
		if count += expanded(child, known); count > maxExpanded {
			break
		}
	}
	known[node] = count
	return count
}
