// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// bfsAnnotation asks kpt to render the packages above before those below.
const bfsAnnotation = "kpt.dev/bfs-rendering"

// kptFile is a Kptfile (kpt.dev/v1). Fields that are not known are refused as kpt does, so that a typo cannot turn off a
// function. Those that are no business of a render are not looked at.
type kptFile struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Annotations map[string]string `yaml:"annotations"`
		Rest        map[string]any    `yaml:",inline"`
	} `yaml:"metadata"`
	Upstream     any `yaml:"upstream"`
	UpstreamLock any `yaml:"upstreamLock"`
	Info         any `yaml:"info"`
	Inventory    any `yaml:"inventory"`
	Status       any `yaml:"status"`
	Pipeline     struct {
		Mutators   []kptFunction `yaml:"mutators"`
		Validators []kptFunction `yaml:"validators"`
	} `yaml:"pipeline"`
}

type kptFunction struct {
	Image      string            `yaml:"image"`
	Exec       string            `yaml:"exec"`
	Name       string            `yaml:"name"`
	Tag        string            `yaml:"tag"`
	ConfigPath string            `yaml:"configPath"`
	ConfigMap  map[string]string `yaml:"configMap"`
	Selectors  []kptSelector     `yaml:"selectors"`
	Exclude    []kptSelector     `yaml:"exclude"`

	at string // path and line, and which one it is
}

// kptSelector selects objects: all of its fields must match.
type kptSelector struct {
	APIVersion  string            `yaml:"apiVersion"`
	Kind        string            `yaml:"kind"`
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// readKptfile reads the Kptfile of a package and checks its functions, before any of them is run.
func readKptfile(files tree.Reader, own ownFunctions, dir string) (*kptFile, error) {
	name := path.Join(dir, reference.KptfileName)
	content, err := files.Read(name)
	if err != nil {
		return nil, err
	}
	if err := checkAliases(content); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var file kptFile
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if file.APIVersion != "kpt.dev/v1" || file.Kind != "Kptfile" {
		return nil, fmt.Errorf("reading %s: it is a %q of %q, but must be a Kptfile of kpt.dev/v1", name, file.Kind, file.APIVersion)
	}
	if file.Metadata.Annotations[bfsAnnotation] == "true" {
		return nil, fmt.Errorf("reading %s: the annotation %s is not supported: packages below are always rendered first", name, bfsAnnotation)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	pipeline := memberValue(doc.Content[0], "pipeline")
	for list, functions := range map[string][]kptFunction{"mutators": file.Pipeline.Mutators, "validators": file.Pipeline.Validators} {
		nodes := memberValue(pipeline, list)
		for i := range functions {
			line := nodes.Line
			if nodes.Kind == yaml.SequenceNode {
				line = nodes.Content[i].Line
			}
			functions[i].at = fmt.Sprintf("%s:%d: pipeline.%s[%d]", name, line, list, i)
			if err := own.checkKptFunction(functions[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", functions[i].at, err)
			}
		}
	}
	return &file, nil
}

// checkKptFunction accepts Prerig's own function only, configured in one way.
func (own ownFunctions) checkKptFunction(function kptFunction) error {
	if (function.Image == "") == (function.Exec == "") {
		return errors.New("exactly one of image and exec must be given")
	}
	if err := own.checkKptCommand(function); err != nil {
		return err
	}
	switch {
	case len(function.ConfigMap) > 0 && function.ConfigPath != "":
		return errors.New("configMap and configPath cannot both be given")
	case len(function.ConfigMap) == 0 && function.ConfigPath == "":
		return errors.New("the function needs its policy: name the file of an InjectionPolicy with configPath, or give configMap")
	case path.IsAbs(function.ConfigPath) || strings.Contains(path.Clean(function.ConfigPath), ".."):
		return fmt.Errorf("configPath %s must stay inside the package", function.ConfigPath)
	}
	return nil
}

func (own ownFunctions) checkKptCommand(function kptFunction) error {
	if function.Image != "" {
		return own.checkImage(function.Image)
	}
	command := strings.Fields(function.Exec)
	if len(command) == 0 {
		return errors.New("exec names no program")
	}
	if err := own.checkExec(command[0]); err != nil {
		return err
	}
	if len(command) > 1 {
		return fmt.Errorf("the function %s is given arguments, but takes none", command[0])
	}
	return nil
}

// readPolicy reads what a function is configured with: one object among those of the package itself.
func (p *kptPackage) readPolicy(function kptFunction) (*policyv1alpha1.InjectionPolicy, error) {
	if len(function.ConfigMap) > 0 {
		data := map[string]any{}
		for key, value := range function.ConfigMap {
			data[key] = value
		}
		policy, err := policyv1alpha1.FromObject(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "function-input"}, "data": data,
		})
		if err != nil {
			return nil, fmt.Errorf("reading configMap: %w", err)
		}
		return policy, nil
	}
	name := path.Join(p.dir, function.ConfigPath)
	var docs []*manifest.Document
	for _, item := range p.items {
		if item.Path == name {
			docs = append(docs, item.Doc)
		}
	}
	switch len(docs) {
	case 0:
		return nil, fmt.Errorf("configPath: %s is not a manifest of the package (%s and packages below are none of it)", name, ignoreName)
	case 1:
	default:
		return nil, fmt.Errorf("configPath: %s holds %d objects, but must hold one", name, len(docs))
	}
	policy, err := policyv1alpha1.FromLocated(docs[0])
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return policy, nil
}

// selectsDocument reports whether a function sees an object: one of its selectors matches, or it has none, and no exclusion does.
func (f kptFunction) selectsDocument(doc *manifest.Document) (bool, error) {
	if len(f.Selectors) == 0 && len(f.Exclude) == 0 {
		return true, nil
	}
	object, err := doc.Object()
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", doc, err)
	}
	selected := len(f.Selectors) == 0
	for _, selector := range f.Selectors {
		selected = selected || selector.matchesObject(object)
	}
	for _, selector := range f.Exclude {
		selected = selected && (selector.isEmpty() || !selector.matchesObject(object))
	}
	return selected, nil
}

// isEmpty reports whether it has no criteria. An empty selector matches everything; an empty exclusion matches no
// object.
func (s kptSelector) isEmpty() bool {
	return s.APIVersion+s.Kind+s.Name+s.Namespace == "" && len(s.Labels) == 0 && len(s.Annotations) == 0
}

func (s kptSelector) matchesObject(object map[string]any) bool {
	meta := metaOf(object)
	metadata, _ := object["metadata"].(map[string]any)
	for _, pair := range [][2]string{{s.APIVersion, meta.APIVersion}, {s.Kind, meta.Kind}, {s.Name, meta.Name}, {s.Namespace, meta.Namespace}} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return containsAll(metadata["labels"], s.Labels) && containsAll(metadata["annotations"], s.Annotations)
}

func containsAll(have any, want map[string]string) bool {
	values, _ := have.(map[string]any)
	for key, value := range want {
		if values[key] != value {
			return false
		}
	}
	return true
}
