// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy finds the InjectionPolicy of a run on the command line: a file that is named, the nearest
// prerig.yaml of the processed files, one that comes with Prerig, or one made of the files that istioctl
// kube-inject accepts. It reads policies and makes no decision about workloads.
package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/policies"
)

// FileName is the policy that is looked for where none is named.
const FileName = "prerig.yaml"

// BuiltIn is the policy that is used if no file is found either.
const BuiltIn = "istio"

// BuiltInOrigin is the origin of that policy.
const BuiltInOrigin = "built-in " + BuiltIn

// Named is a policy with a description of its origin.
type Named struct {
	*v1alpha1.InjectionPolicy
	// Origin is the file, or "built-in NAME".
	Origin string
}

// otherFiles suggests files for a name without its extension, and for several names in one; "" where it knows none.
func otherFiles(name string) string {
	for _, extension := range []string{".yaml", ".yml", ".json"} {
		if _, err := os.Stat(name + extension); err == nil {
			return ", did you mean " + name + extension + "?"
		}
	}
	names := strings.Split(name, ",")
	if len(names) > 1 && !slices.Contains(names, "") {
		return "; to use several policies, repeat the flag: -p " + strings.Join(names, " -p ")
	}
	return ""
}

// Load reads the policy that the user named: a file, or otherwise one that comes with Prerig.
func Load(name string) (Named, error) {
	data, err := os.ReadFile(name)
	if err == nil {
		return parsePolicy(name, data)
	}
	if text, ok := policies.Get(name); ok && errors.Is(err, fs.ErrNotExist) {
		return parsePolicy("built-in "+name, text)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if strings.Contains(name, "://") {
			return Named{}, fmt.Errorf("reading policy %s: URLs are not read; save the file first: curl -fsSLo %s %s", name, FileName, name)
		}
		if hint := otherFiles(name); hint != "" {
			return Named{}, fmt.Errorf("reading policy %s: no such file%s", name, hint)
		}
		return Named{}, fmt.Errorf("reading policy %s: no such file, and no built-in policy of that name%s (built-in policies: %s)",
			name, strict.DidYouMean(filepath.Base(name), append(files.NamesBeside(name), policies.Names()...)), strings.Join(policies.Names(), ", "))
	}
	if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
		return Named{}, fmt.Errorf("reading policy %s: it is a directory; name the file of the policy in it, such as %s", name, filepath.Join(name, FileName))
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return Named{}, fmt.Errorf("reading policy %s: %w", name, err)
}

// Default returns the policy that comes with Prerig and is used without a file.
func Default() (Named, error) {
	text, ok := policies.Get(BuiltIn)
	if !ok {
		return Named{}, fmt.Errorf("searching for a policy: the built-in policy %s is missing from this build", BuiltIn)
	}
	return parsePolicy(BuiltInOrigin, text)
}

// kindsOf returns the kinds of documents, each once.
func kindsOf(docs []*manifest.Document) (kinds []string) {
	for _, d := range docs {
		if meta, ok := d.Peek(); ok && meta.Kind != "" && !slices.Contains(kinds, meta.Kind) {
			kinds = append(kinds, meta.Kind)
		}
	}
	return kinds
}

// parsePolicy reads one policy. A file is one object, as kustomize and kpt want it.
func parsePolicy(origin string, data []byte) (Named, error) {
	file, err := manifest.Parse(origin, data)
	if err != nil {
		return Named{}, fmt.Errorf("reading policy %w", err)
	}
	var found []*manifest.Document
	for _, d := range file.Docs {
		if !d.Empty() {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return Named{}, fmt.Errorf("reading policy %s: the file is empty", origin)
	case 1:
	default:
		if kinds := kindsOf(found); !slices.Contains(kinds, v1alpha1.Kind) {
			return Named{}, fmt.Errorf("reading policy %s: it contains no InjectionPolicy, only %s; to inject these objects, specify the file without -p",
				origin, strings.Join(kinds, ", "))
		}
		return Named{}, fmt.Errorf("reading policy %s: a file contains one policy, and this one has %d documents (the second at line %d); "+
			"move further policies to separate files, each with --policy", origin, len(found), found[1].Line())
	}
	if err := mistakenFileError(origin, data); err != nil {
		return Named{}, fmt.Errorf("reading policy %s: %w", origin, err)
	}
	p, err := v1alpha1.ParseFile(origin, data)
	if err != nil {
		return Named{}, fmt.Errorf("reading policy %s: %w", origin, err)
	}
	return Named{InjectionPolicy: p, Origin: origin}, nil
}
