// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package definitions holds the CustomResourceDefinitions of widely used projects, by their releases: those of Istio, the Gateway
// API, Flux, Argo CD and others. They are the published definitions without descriptions and status schemas. SOURCES.md lists
// the projects, the releases and their licences.
package definitions

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// files has index.json, which lists the products, and one file for each product with its definitions. `make definitions` writes
// them; go generate does not, as that downloads the sources of all products.
//
//go:embed data
var files embed.FS

// IndexFile is the name of the list of products among the files.
const IndexFile = "index.json"

// Istio is the name of the product whose release a policy names.
const Istio = "istio"

// Product is a project that defines kinds.
type Product struct {
	// Name is that of the product and of its file.
	Name string `json:"name"`
	// Source is the Go module or the repository with the definitions, and Licence its licence as an SPDX identifier.
	Source  string `json:"source"`
	Licence string `json:"licence"`
	// Releases are those that were read, from the oldest to the newest.
	Releases []string `json:"releases"`
	// Kinds are GROUP/KIND of all releases.
	Kinds []string `json:"kinds"`
}

// Definition is a CustomResourceDefinition as some releases have it.
type Definition struct {
	// Kind is GROUP/KIND.
	Kind string `json:"kind"`
	// Releases are those with this definition.
	Releases []string `json:"releases"`
	// Object is the CustomResourceDefinition.
	Object json.RawMessage `json:"object"`
}

// FileName returns the name of a product's file.
func (p Product) FileName() string { return p.Name + ".json.zst" }

var products = sync.OnceValues(func() (map[string]Product, error) {
	text, err := files.ReadFile("data/" + IndexFile)
	if err != nil {
		return nil, err
	}
	var all []Product
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("reading the list of definitions: %w", err)
	}
	byKind := map[string]Product{}
	for _, p := range all {
		for _, kind := range p.Kinds {
			byKind[kind] = p
		}
	}
	return byKind, nil
})

// ProductOf returns the product that defines a kind; ok is false if none is known.
func ProductOf(group, kind string) (p Product, ok bool, err error) {
	byKind, err := products()
	if err != nil {
		return Product{}, false, err
	}
	p, ok = byKind[group+"/"+kind]
	return p, ok, nil
}

// Library reads definitions, and keeps what it has unpacked. It is not safe for concurrent use.
type Library struct {
	unpacked map[string][]Definition
}

// Of returns the definitions of a kind by a product, from the oldest to the newest; those of one release if release is set. A
// release between known ones has those of both neighbours, one that is older or newer than all those of the nearest.
func (l *Library) Of(p Product, group, kind, release string) ([]Definition, error) {
	all, err := l.unpack(p)
	if err != nil {
		return nil, err
	}
	wanted := neighbours(p.Releases, release)
	var out []Definition
	for _, d := range all {
		if d.Kind == group+"/"+kind && (release == "" || overlap(d.Releases, wanted)) {
			out = append(out, d)
		}
	}
	return out, nil
}

func (l *Library) unpack(p Product) ([]Definition, error) {
	if all, ok := l.unpacked[p.Name]; ok {
		return all, nil
	}
	packed, err := files.ReadFile("data/" + p.FileName())
	if err != nil {
		return nil, err
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := r.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("unpacking the definitions of %s: %w", p.Name, err)
	}
	var all []Definition
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("reading the definitions of %s: %w", p.Name, err)
	}
	if l.unpacked == nil {
		l.unpacked = map[string][]Definition{}
	}
	l.unpacked[p.Name] = all
	return all, nil
}

// neighbours returns the releases of the same minor, else the nearest older and newer ones.
func neighbours(known []string, release string) []string {
	var older, newer, same []string
	for _, k := range known {
		difference := minorOf(k) - minorOf(release)
		switch {
		case difference == 0:
			same = append(same, k)
		case difference < 0:
			older = []string{k}
		case len(newer) == 0:
			newer = []string{k}
		}
	}
	if len(same) > 0 {
		return same
	}
	return append(older, newer...)
}

// minorOf returns a number that orders releases by their major and minor.
func minorOf(release string) int {
	parts := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	major, _ := strconv.Atoi(parts[0])
	if len(parts) < 2 {
		return major * 1000
	}
	minor, _ := strconv.Atoi(parts[1])
	return major*1000 + minor
}

func overlap(a, b []string) bool {
	for _, one := range a {
		for _, other := range b {
			if one == other {
				return true
			}
		}
	}
	return false
}
