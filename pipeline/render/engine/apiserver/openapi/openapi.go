// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package openapi knows the kinds and the schemas of the API server, for each minor version of Kubernetes. They are those of the
// OpenAPI documents in the repository of Kubernetes, with the enumerations of its Go code, and without descriptions.
package openapi

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the schemas
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/render/gate"
)

// packed is the Catalog as JSON, compressed. `make kubernetes-schemas` writes it; go generate does not, as that downloads the sources of
// all versions.
//
//go:embed schemas.json.gz
var packed []byte

// Catalog is what is stored of all versions, each schema and each kind once.
type Catalog struct {
	// Names are those of definitions.
	Names []string `json:"names"`
	// Schemas are the texts of definitions.
	Schemas []json.RawMessage `json:"schemas"`
	// Kinds are all kinds of all versions.
	Kinds []Kind `json:"kinds"`
	// Versions are from the oldest to the newest.
	Versions []CatalogVersion `json:"versions"`
}

// CatalogVersion is what one minor version of Kubernetes has of a Catalog.
type CatalogVersion struct {
	// Minor is the version, such as 1.34.
	Minor string `json:"minor"`
	// Definitions are pairs of indexes into Names and Schemas.
	Definitions [][2]int `json:"definitions"`
	// Kinds are indexes into the Kinds of the Catalog.
	Kinds []int `json:"kinds"`
}

// Kind is a kind of which objects can be created.
type Kind struct {
	// APIVersion and Kind are as objects have them.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Resource is the plural that URLs and admission policies use, such as deployments.
	Resource string `json:"resource"`
	// Namespaced reports whether objects are in a namespace.
	Namespaced bool `json:"namespaced,omitempty"`
	// Definition is the name of its schema.
	Definition string `json:"definition"`
}

// Server is the API server of one minor version of Kubernetes.
type Server struct {
	// Minor is the version, such as 1.34.
	Minor string

	catalog *Catalog
	texts   map[string]int // indexes of schemas by the names of definitions
	schemas map[string]*Schema
	kinds   map[[2]string]Kind
}

// NewServer returns the API server of a version such as 1.34 or v1.34.2; an empty version means the newest known
// one. For a version that is newer or older than the known ones it returns an error that lists them. A Server is
// not safe for concurrent use.
func NewServer(version string) (*Server, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of Kubernetes: %w", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of Kubernetes: %w", err)
	}
	var catalog Catalog
	if err := json.Unmarshal(text, &catalog); err != nil {
		return nil, fmt.Errorf("reading the schemas of Kubernetes: %w", err)
	}
	minor, err := gate.KubernetesMinor(version)
	if err != nil {
		return nil, err
	}
	for _, v := range catalog.Versions {
		if v.Minor == minor {
			return newServer(&catalog, v), nil
		}
	}
	return nil, fmt.Errorf("reading the schemas of Kubernetes: there are none of %s", minor)
}

// Known returns the oldest and the newest version that are known.
func (s *Server) Known() (oldest, newest string) {
	return s.catalog.Versions[0].Minor, s.catalog.Versions[len(s.catalog.Versions)-1].Minor
}

func newServer(catalog *Catalog, v CatalogVersion) *Server {
	s := &Server{Minor: v.Minor, catalog: catalog, texts: map[string]int{}, schemas: map[string]*Schema{}, kinds: map[[2]string]Kind{}}
	for _, d := range v.Definitions {
		s.texts[catalog.Names[d[0]]] = d[1]
	}
	for _, i := range v.Kinds {
		k := catalog.Kinds[i]
		s.kinds[[2]string{k.APIVersion, k.Kind}] = k
	}
	return s
}

// Lookup finds a kind; false where the API server of this version does not have it.
func (s *Server) Lookup(apiVersion, kind string) (Kind, bool) {
	k, ok := s.kinds[[2]string{apiVersion, kind}]
	return k, ok
}

// Kinds returns all kinds, in no particular order.
func (s *Server) Kinds() []Kind {
	out := make([]Kind, 0, len(s.kinds))
	for _, k := range s.kinds {
		out = append(out, k)
	}
	return out
}

// HasGroup reports whether the API group is Kubernetes' own in some version: "" is the core group, and extensions was the first home of
// much that is elsewhere now. A group that is named after a domain of Kubernetes may still be of custom resources.
func (s *Server) HasGroup(group string) bool {
	if group == "" || group == "extensions" {
		return true
	}
	for _, k := range s.catalog.Kinds {
		if g, _, ok := strings.Cut(k.APIVersion, "/"); ok && g == group {
			return true
		}
	}
	return false
}

// decodeDefinition returns a definition, which is decoded when it is first asked for.
func (s *Server) decodeDefinition(name string) *Schema {
	if known, ok := s.schemas[name]; ok {
		return known
	}
	out := &Schema{}
	if i, ok := s.texts[name]; ok {
		// The text was written by json.Marshal of the same type, and a test reads all of it.
		_ = json.Unmarshal(s.catalog.Schemas[i], out)
	}
	s.schemas[name] = out
	return out
}

// OtherVersions describes where the API server has a kind that is missing from the requested version: " (it has
// …)". It returns an empty string if the kind does not exist at all.
func (s *Server) OtherVersions(group, kind string) string {
	var found []string
	for key := range s.kinds {
		g, _, ok := strings.Cut(key[0], "/")
		if key[1] == kind && (ok && g == group || !ok && group == "") {
			found = append(found, key[0])
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return " (it has " + strings.Join(found, ", ") + ")"
}

// CheckMetadata checks the metadata of an object of any kind.
func (s *Server) CheckMetadata(object map[string]any) []Problem {
	c := &checker{server: s}
	c.check(&Schema{Ref: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}, object["metadata"], []any{"metadata"})
	return c.problems
}
