// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

const kptfileName = "Kptfile"

// kptfile is what is read of a Kptfile (kpt.dev/v1). Its other fields are about where a package comes from.
type kptfile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Pipeline   struct {
		Mutators   []kptFunction `json:"mutators"`
		Validators []kptFunction `json:"validators"`
	} `json:"pipeline"`
}

type kptFunction struct {
	Image      string            `json:"image"`
	Exec       string            `json:"exec"`
	Name       string            `json:"name"`
	Tag        string            `json:"tag"`
	ConfigPath string            `json:"configPath"`
	ConfigMap  map[string]string `json:"configMap"`
	Selectors  []kptSelector     `json:"selectors"`
	Exclude    []kptSelector     `json:"exclude"`
}

// kptSelector selects objects: all of its fields must match.
type kptSelector struct {
	APIVersion  string            `json:"apiVersion"`
	Kind        string            `json:"kind"`
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// kpt renders a package as kpt fn render does: the pipelines of packages below first, then that of the package over all of
// their objects. Every function must be Prerig's own.
func (w *worker) kpt(ctx context.Context) ([]fn.Item, error) {
	return w.kptPackage(ctx, w.request.Path)
}

func (w *worker) kptPackage(ctx context.Context, dir string) ([]fn.Item, error) {
	name := path.Join(dir, kptfileName)
	content, err := w.files.Read(name)
	if err != nil {
		return nil, err
	}
	var file kptfile
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if !strings.HasPrefix(file.APIVersion, "kpt.dev/") || file.Kind != "Kptfile" {
		return nil, fmt.Errorf("reading %s: it is a %s %s, not a Kptfile", name, file.APIVersion, file.Kind)
	}
	var below []fn.Item
	items, err := w.collect(dir, func(sub string) (bool, error) {
		if _, err := w.files.Lookup(path.Join(sub, kptfileName)); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			return false, err
		}
		rendered, err := w.kptPackage(ctx, sub)
		below = append(below, rendered...)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	items = append(items, below...)
	for i, function := range file.Pipeline.Mutators {
		if items, err = w.kptRun(ctx, dir, function, items); err != nil {
			return nil, fmt.Errorf("%s: pipeline.mutators[%d]: %w", name, i, err)
		}
	}
	for i, function := range file.Pipeline.Validators {
		// What a validator changes is dropped.
		if _, err = w.kptRun(ctx, dir, function, items); err != nil {
			return nil, fmt.Errorf("%s: pipeline.validators[%d]: %w", name, i, err)
		}
	}
	return items, nil
}

// kptRun runs one function on the objects that it selects.
func (w *worker) kptRun(ctx context.Context, dir string, function kptFunction, items []fn.Item) ([]fn.Item, error) {
	policy, err := w.kptPolicy(dir, function)
	if err != nil {
		return nil, err
	}
	injector, err := fn.New([]*policyv1alpha1.InjectionPolicy{policy})
	if err != nil {
		return nil, err
	}
	var chosen []fn.Item
	var at []int
	for i, item := range items {
		ok, err := function.selects(item.Doc)
		if err != nil {
			return nil, err
		}
		if ok {
			chosen, at = append(chosen, item), append(at, i)
		}
	}
	report, err := w.inject(ctx, injector, chosen, dir)
	if err != nil {
		return nil, err
	}
	out := append([]fn.Item(nil), items...)
	for i, item := range report.Items {
		out[at[i]] = item
	}
	for _, doc := range report.Added {
		out = append(out, fn.Item{Doc: doc})
	}
	return out, nil
}

func (w *worker) kptPolicy(dir string, function kptFunction) (*policyv1alpha1.InjectionPolicy, error) {
	var err error
	switch {
	case (function.Image == "") == (function.Exec == ""):
		err = errors.New("exactly one of image and exec must be given")
	case function.Image != "":
		err = w.ownImage(function.Image)
	default:
		command := strings.Fields(function.Exec)
		if len(command) > 1 {
			err = fmt.Errorf("the function %s is given arguments, but takes none", command[0])
		} else {
			err = w.ownExec(function.Exec)
		}
	}
	if err != nil {
		return nil, err
	}
	if function.ConfigPath == "" {
		return nil, errors.New("configPath must name the file of an InjectionPolicy")
	}
	if clean := path.Clean(function.ConfigPath); path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return nil, fmt.Errorf("configPath %s must stay inside the package", function.ConfigPath)
	}
	content, err := w.files.Read(path.Join(dir, function.ConfigPath))
	if err != nil {
		return nil, err
	}
	policy, err := policyv1alpha1.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", function.ConfigPath, err)
	}
	return policy, nil
}

// selects says whether a function sees an object: one of its selectors matches, or it has none, and no exclusion does.
func (f kptFunction) selects(doc *manifest.Document) (bool, error) {
	if len(f.Selectors) == 0 && len(f.Exclude) == 0 {
		return true, nil
	}
	object, err := doc.Object()
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", doc, err)
	}
	selected := len(f.Selectors) == 0
	for _, selector := range f.Selectors {
		selected = selected || selector.matches(object)
	}
	for _, selector := range f.Exclude {
		selected = selected && !selector.matches(object)
	}
	return selected, nil
}

func (s kptSelector) matches(object map[string]any) bool {
	meta := metaOf(object)
	metadata, _ := object["metadata"].(map[string]any)
	for _, pair := range [][2]string{{s.APIVersion, meta.APIVersion}, {s.Kind, meta.Kind}, {s.Name, meta.Name}, {s.Namespace, meta.Namespace}} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return contains(metadata["labels"], s.Labels) && contains(metadata["annotations"], s.Annotations)
}

func contains(have any, want map[string]string) bool {
	values, _ := have.(map[string]any)
	for key, value := range want {
		if values[key] != value {
			return false
		}
	}
	return true
}
