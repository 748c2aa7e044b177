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
	"hash/crc32"
	"slices"
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

const (
	// Istio is the name of the product whose release a policy names.
	Istio = "istio"
	// Catalogue is the name of the collection of definitions of many projects, of one unknown release of each, without scopes.
	Catalogue = "crds-catalog"
)

// Product is a project that defines kinds.
type Product struct {
	// Name is that of the product and of its file.
	Name string `json:"name"`
	// Source is the Go module or the repository with the definitions, and Licence its licence as an SPDX identifier.
	Source  string `json:"source"`
	Licence string `json:"licence"`
	// Releases are those that were read, from the oldest to the newest.
	Releases []string `json:"releases"`
	// Kinds are GROUP/KIND of all releases; in the catalogue, some KINDs are in lower case.
	Kinds []string `json:"kinds"`
	// Parts is into how many files the definitions are divided, by their groups; 0 means one that is not numbered.
	Parts int `json:"parts,omitempty"`
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

// FileName returns the name of the file with the definitions of a kind, GROUP/KIND. Groups of one domain are in one file.
func (p Product) FileName(kind string) string {
	if p.Parts == 0 {
		return p.Name + ".json.zst"
	}
	group, _, _ := strings.Cut(kind, "/")
	labels := strings.Split(group, ".")
	domain := strings.Join(labels[max(0, len(labels)-2):], ".")
	return fmt.Sprintf("%s-%d.json.zst", p.Name, crc32.ChecksumIEEE([]byte(domain))%uint32(p.Parts))
}

// Products returns all products, with the catalogue.
func Products() ([]Product, error) {
	text, err := files.ReadFile("data/" + IndexFile)
	if err != nil {
		return nil, err
	}
	var all []Product
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("reading the list of definitions: %w", err)
	}
	return all, nil
}

// byKind has the products by GROUP/KIND, in the order of the list, in which the catalogue is the last.
var byKind = sync.OnceValues(func() (map[string][]Product, error) {
	all, err := Products()
	if err != nil {
		return nil, err
	}
	out := map[string][]Product{}
	for _, p := range all {
		for _, kind := range p.Kinds {
			out[kind] = append(out[kind], p)
		}
	}
	return out, nil
})

// ProductsOf returns the products that define a kind. Its own is before those that have a copy, and the catalogue is the last.
func ProductsOf(group, kind string) ([]Product, error) {
	known, err := byKind()
	if err != nil {
		return nil, err
	}
	out := known[group+"/"+kind]
	if lower := strings.ToLower(kind); lower != kind {
		out = slices.Concat(out, known[group+"/"+lower])
	}
	return out, nil
}

// Library reads definitions, and keeps what it has unpacked. It is not safe for concurrent use.
type Library struct {
	unpacked map[string][]Definition
}

// Of returns the definitions of a kind by a product, from the oldest to the newest; those of one release if release is set. A
// release between known ones has those of both neighbours, one that is older or newer than all those of the nearest.
func (l *Library) Of(p Product, group, kind, release string) ([]Definition, error) {
	all, err := l.unpack(p.FileName(group + "/" + kind))
	if err != nil {
		return nil, err
	}
	wanted := neighbours(p.Releases, release)
	var out []Definition
	for _, d := range all {
		same := d.Kind == group+"/"+kind || p.Name == Catalogue && d.Kind == group+"/"+strings.ToLower(kind)
		if same && (release == "" || overlap(d.Releases, wanted)) {
			out = append(out, d)
		}
	}
	return out, nil
}

func (l *Library) unpack(file string) ([]Definition, error) {
	if all, ok := l.unpacked[file]; ok {
		return all, nil
	}
	packed, err := files.ReadFile("data/" + file)
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
		return nil, fmt.Errorf("unpacking %s: %w", file, err)
	}
	var all []Definition
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if l.unpacked == nil {
		l.unpacked = map[string][]Definition{}
	}
	l.unpacked[file] = all
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
