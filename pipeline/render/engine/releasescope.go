// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/openapi"
)

// scopes knows which kinds are in namespaces: Kubernetes' own, and those whose definitions are among the objects.
type scopes struct {
	version string
	server  *openapi.Server // read when it is first needed
	custom  map[string]bool // by group/Kind: whether namespaced
	// guesses reports whether an object of an unknown kind gets the namespace of its release, as most kinds are namespaced. A review
	// shows the namespace that it has itself.
	guesses bool
	guessed map[string]result.ResourceRef
}

func newScopes(version string, guesses bool) *scopes {
	return &scopes{version: version, guesses: guesses, custom: map[string]bool{}, guessed: map[string]result.ResourceRef{}}
}

// lookupKind finds a kind of a version of Kubernetes, or of the newest where that one is not known.
func (s *scopes) lookupKind(meta manifest.Meta) (kind openapi.Kind, ok bool, err error) {
	if s.server == nil {
		if s.server, err = openapi.NewServer(s.version); err != nil {
			if s.server, err = openapi.NewServer(""); err != nil {
				return kind, false, err
			}
		}
	}
	kind, ok = s.server.Lookup(meta.APIVersion, meta.Kind)
	return kind, ok, nil
}

// addDefinition records the kind and scope that a CustomResourceDefinition declares.
func (s *scopes) addDefinition(value map[string]any) {
	if value["kind"] != "CustomResourceDefinition" {
		return
	}
	spec, _ := value["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ := spec["group"].(string)
	kind, _ := names["kind"].(string)
	s.custom[group+"/"+kind] = spec["scope"] != "Cluster"
}

// isNamespaced reports whether objects of a kind are namespaced, which may also be the assumption for an unknown kind.
func (s *scopes) isNamespaced(meta manifest.Meta) (bool, error) {
	if known, ok, err := s.lookupKind(meta); ok || err != nil {
		return known.Namespaced, err
	}
	group, _, grouped := strings.Cut(meta.APIVersion, "/")
	if !grouped {
		group = ""
	}
	namespaced, ok := s.custom[group+"/"+meta.Kind]
	if !ok && !s.guesses {
		return false, nil
	}
	if !ok {
		if _, seen := s.guessed[group+"/"+meta.Kind]; !seen {
			s.guessed[group+"/"+meta.Kind] = result.ResourceRef{APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Namespace, Name: meta.Name}
		}
	}
	return namespaced || !ok, nil
}

// unknownKindFindings lists the unknown kinds.
func (s *scopes) unknownKindFindings() result.Results {
	var out result.Results
	for _, kind := range slices.Sorted(maps.Keys(s.guessed)) {
		ref := s.guessed[kind]
		out = append(out, result.Result{
			Severity: result.Info, ResourceRef: &ref, Field: &result.Field{Path: "metadata.namespace"},
			Message: fmt.Sprintf("was assigned the namespace of its release, since %s is not known to be cluster-wide; a definition under spec.build.releases.objects does", ref.Kind),
		})
	}
	return out
}

// withNamespace sets the namespace of its release on a namespaced object that has none, as Helm does on install.
func (s *scopes) withNamespace(doc *manifest.Document, namespace string) (*manifest.Document, error) {
	value, err := doc.Object()
	if err != nil || namespace == "" {
		return doc, err
	}
	meta := metaOf(value)
	if meta.APIVersion == "" || meta.Kind == "" || meta.Namespace != "" {
		return doc, nil
	}
	if namespaced, err := s.isNamespaced(meta); err != nil || !namespaced {
		return doc, err
	}
	metadata, _ := value["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	metadata["namespace"] = namespace
	value = maps.Clone(value)
	value["metadata"] = metadata
	return doc.With(value)
}
