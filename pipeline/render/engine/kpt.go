// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	gitignore "github.com/monochromegane/go-gitignore"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// A package is rendered as by kpt fn render; the rules below are taken from it (kpt v1.0.0-beta.60,
// internal/util/render and kyaml's LocalPackageReader).
//
//   - Subpackages come first, in the order of their paths, each with its own pipeline; then the package's own manifests
//     in the order of a walk; then its pipeline over all of them.
//   - A function sees every manifest, including the Kptfile, its configuration, and objects for tools only. What
//     is not for a cluster is removed at the very end.
//   - .krmignore applies at the top of a package, to the files of this package, and never to subpackages.
//   - Changes by a validator are dropped.
//
// The objects and their order are those of kpt. The text differs because kpt rewrites all files in its own style:
// here a document stays unchanged except for the injection.

// ignoreName is the file with patterns of what is not of a package.
const ignoreName = ".krmignore"

// kptBuild renders packages with Prerig's own function.
type kptBuild struct {
	files     tree.Reader
	own       ownFunctions
	injection *injection
}

// kptPackage is a directory with a Kptfile.
type kptPackage struct {
	dir   string
	below []string  // packages
	items []fn.Item // its own
}

// render returns the objects of the package at a path that are for a cluster.
func (k *kptBuild) render(ctx context.Context, at string) ([]fn.Item, error) {
	info, err := k.files.Lookup(at)
	if err != nil {
		return nil, err
	}
	items, err := k.renderPackage(ctx, info.Path)
	if err != nil {
		return nil, err
	}
	var out []fn.Item
	for _, item := range items {
		if isKustomizationFile(item.Path) {
			continue
		}
		keep, err := isClusterObject(item.Doc)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.Doc, err)
		}
		if keep {
			out = append(out, item)
		}
	}
	return out, nil
}

// isKustomizationFile reports whether a file is a kustomization, which needs neither apiVersion nor kind.
func isKustomizationFile(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

func (k *kptBuild) renderPackage(ctx context.Context, dir string) ([]fn.Item, error) {
	file, err := readKptfile(k.files, k.own, dir)
	if err != nil {
		return nil, err
	}
	p, err := k.readPackage(dir)
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	for _, sub := range p.below {
		rendered, err := k.renderPackage(ctx, sub)
		if err != nil {
			return nil, err
		}
		items = append(items, rendered...)
	}
	items = append(items, p.items...)
	for _, function := range file.Pipeline.Mutators {
		if items, err = k.runFunction(ctx, p, function, items); err != nil {
			return nil, fmt.Errorf("%s: %w", function.at, err)
		}
	}
	for _, function := range file.Pipeline.Validators {
		if _, err = k.runFunction(ctx, p, function, items); err != nil {
			return nil, fmt.Errorf("%s: %w", function.at, err)
		}
	}
	return items, nil
}

// readPackage reads the manifests of a package and finds the packages below.
func (k *kptBuild) readPackage(dir string) (*kptPackage, error) {
	p := &kptPackage{dir: dir}
	var ignored gitignore.IgnoreMatcher = gitignore.DummyIgnoreMatcher(false)
	content, err := k.files.Read(path.Join(dir, ignoreName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		ignored = gitignore.NewGitIgnoreFromReader(path.Join("/", dir), bytes.NewReader(content))
	}
	if err := k.walkPackage(p, dir, ignored, false); err != nil {
		return nil, err
	}
	slices.Sort(p.below)
	return p, nil
}

// walkPackage walks a directory. Ignored directories are still searched for packages.
func (k *kptBuild) walkPackage(p *kptPackage, dir string, ignored gitignore.IgnoreMatcher, left bool) error {
	list, err := k.files.List(dir)
	if err != nil {
		return err
	}
	for _, entry := range list {
		name := path.Join(dir, path.Base(entry.Path))
		leave := left || ignored.Match(path.Join("/", name), entry.Dir)
		switch {
		case entry.Dir:
			if err := k.walkBelow(p, name, ignored, leave); err != nil {
				return err
			}
		case !leave && manifestName(path.Base(name)):
			items, err := readPackageFile(k.files, name)
			if err != nil {
				return err
			}
			p.items = append(p.items, items...)
		}
	}
	return nil
}

func (k *kptBuild) walkBelow(p *kptPackage, name string, ignored gitignore.IgnoreMatcher, leave bool) error {
	// Links to directories are not followed, which also ends loops of them.
	if info, err := k.files.Lookup(name); err != nil || info.Path != name || path.Base(name) == ".git" {
		return err
	}
	_, err := k.files.Lookup(path.Join(name, reference.KptfileName))
	switch {
	case err == nil:
		p.below = append(p.below, name)
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return k.walkPackage(p, name, ignored, leave)
}

// manifestName reports whether kpt reads a file of this name.
func manifestName(base string) bool {
	switch path.Ext(base) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return base == reference.KptfileName
}

// readPackageFile reads all objects of a file, also those that are not for a cluster, and expects of each what kpt does.
func readPackageFile(files tree.Reader, name string) ([]fn.Item, error) {
	return readFile(files, name, func(doc *manifest.Document) (bool, error) {
		object, err := doc.Object()
		if err != nil || isKustomizationFile(name) {
			return true, err
		}
		if meta := metaOf(object); meta.APIVersion == "" || meta.Kind == "" || meta.Name == "" && result.GeneratedName(object) == "" {
			return false, fmt.Errorf("an object of a kpt package needs apiVersion, kind, and metadata.name or generateName; list other files in %s", ignoreName)
		}
		return true, nil
	})
}

// runFunction runs one function on the objects that it selects.
func (k *kptBuild) runFunction(ctx context.Context, p *kptPackage, function kptFunction, items []fn.Item) ([]fn.Item, error) {
	policy, err := p.readPolicy(function)
	if err != nil {
		return nil, err
	}
	injector, err := fn.New([]*policyv1alpha1.InjectionPolicy{policy}, fn.WithAdmission(apiserver.NewMutator().Evaluate))
	if err != nil {
		return nil, err
	}
	var chosen []fn.Item
	var at []int
	for i, item := range items {
		ok, err := function.selectsDocument(item.Doc)
		if err != nil {
			return nil, err
		}
		if ok {
			chosen, at = append(chosen, item), append(at, i)
		}
	}
	report, err := k.injection.run(ctx, injector, chosen, p.dir)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(items)
	for i, item := range report.Items {
		out[at[i]] = item
	}
	// The next function does not see what this one has removed.
	out = slices.DeleteFunc(out, func(item fn.Item) bool { return item.Doc.Empty() })
	for _, doc := range report.Added {
		out = append(out, fn.Item{Doc: doc})
	}
	return out, nil
}
