// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"path"

	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// PolicySources are where the policies of a pipeline can come from.
type PolicySources struct {
	// Files is the source; what is read of it counts as read by the render.
	Files tree.Reader
	// Own is the operator's directory of policies; nil means that there is none.
	Own fs.FS
	// BuiltIn gives the text of a policy that comes with Prerig.
	BuiltIn func(name string) ([]byte, bool)
}

// Load gives the texts of the policies that a pipeline names, in order. They are only split here, and decoded by the
// renderer. A file without any InjectionPolicy is an error.
func (s PolicySources) Load(refs []v1alpha1.PolicyRef) ([]Policy, error) {
	var policies []Policy
	for _, ref := range refs {
		origin, content, err := s.read(ref)
		if err != nil {
			return nil, fmt.Errorf("reading the policy %s: %w", origin, err)
		}
		found, err := split(origin, content)
		if err != nil {
			return nil, fmt.Errorf("reading the policy %s: %w", origin, err)
		}
		policies = append(policies, found...)
	}
	return policies, nil
}

// maxPolicy bounds a file of policies: an injector's configuration and values have some hundred kilobytes.
const maxPolicy = 16 << 20

func (s PolicySources) read(ref v1alpha1.PolicyRef) (origin string, content []byte, err error) {
	switch {
	case ref.Path != "":
		content, err = s.Files.Read(ref.Path)
		return ref.Path, content, err
	case ref.BuiltIn != "":
		content, ok := s.BuiltIn(ref.BuiltIn)
		if !ok {
			return ref.BuiltIn, nil, fmt.Errorf("Prerig has no built-in policy of this name")
		}
		return ref.BuiltIn, content, nil
	case s.Own == nil:
		return ref.File, nil, fmt.Errorf("no directory of policies is configured")
	}
	info, err := fs.Stat(s.Own, path.Clean(ref.File))
	if err != nil {
		return ref.File, nil, err
	}
	if info.Size() > maxPolicy {
		return ref.File, nil, &tree.LimitError{What: "size of the file in bytes", Limit: maxPolicy}
	}
	content, err = fs.ReadFile(s.Own, path.Clean(ref.File))
	return ref.File, content, err
}

func split(origin string, content []byte) ([]Policy, error) {
	file, err := manifest.Parse(origin, content)
	if err != nil {
		return nil, err
	}
	var policies []Policy
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		meta, ok := doc.Peek()
		if !ok {
			object, err := doc.Object()
			if err != nil {
				return nil, err
			}
			meta = metaOf(object)
		}
		if policyv1alpha1.IsPolicy(meta.APIVersion, meta.Kind) {
			policies = append(policies, Policy{Origin: origin, YAML: string(doc.Raw())})
		}
	}
	if len(policies) == 0 {
		return nil, fmt.Errorf("it holds no InjectionPolicy")
	}
	return policies, nil
}
