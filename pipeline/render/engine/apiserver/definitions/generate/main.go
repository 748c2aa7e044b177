// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the definitions of package definitions: it downloads the releases that sources.go lists from the Go
// module proxy, or from Git, and reduces their CustomResourceDefinitions to what a check needs. Arguments name the products to
// write; without arguments it writes all. Releases that are in Git only need git and access to the repository.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/definitions"
)

func main() {
	if err := generate(context.Background(), "data", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generating the definitions:", err)
		os.Exit(1)
	}
}

// generate writes the files of the products, and the lists of all products.
func generate(ctx context.Context, dir string, names []string) error {
	known, err := readIndex(dir)
	if err != nil {
		return err
	}
	var index []definitions.Product
	for _, s := range sources {
		before := slices.IndexFunc(known, func(p definitions.Product) bool { return p.Name == s.Name })
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			if before >= 0 {
				index = append(index, known[before])
			}
			continue
		}
		product, err := s.write(ctx, dir)
		if err != nil {
			return fmt.Errorf("reading %s: %w", s.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %d kinds of %d releases\n", s.Name, len(product.Kinds), len(product.Releases))
		index = append(index, product)
	}
	return writeIndex(dir, index)
}

func readIndex(dir string) ([]definitions.Product, error) {
	text, err := os.ReadFile(filepath.Join(dir, definitions.IndexFile))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []definitions.Product
	return out, json.Unmarshal(text, &out)
}

// writeIndex writes the list of products for the program, and the one for people.
func writeIndex(dir string, index []definitions.Product) error {
	text, err := json.MarshalIndent(index, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, definitions.IndexFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	var page strings.Builder
	page.WriteString("# Definitions that `prerig gate` knows\n\n`make definitions` writes this page and the files in `data`. The definitions are those of the " +
		"projects, without descriptions,\nexamples and the schemas of `status`. Those of `" + definitions.Catalogue + "` are of releases that it does not name, " +
		"and used for kinds and versions\nthat no other product has.\n\n| product | releases | kinds | source | licence |\n|---|---|---|---|---|\n")
	for _, p := range index {
		fmt.Fprintf(&page, "| %s | %s | %d | %s | %s |\n", p.Name, strings.Join(p.Releases, ", "), len(p.Kinds), p.Source, p.Licence)
	}
	return os.WriteFile(filepath.Join(filepath.Dir(dir), "SOURCES.md"), []byte(page.String()), 0o644)
}

// write writes the file of a product, each definition once.
func (s source) write(ctx context.Context, dir string) (definitions.Product, error) {
	product := definitions.Product{Name: s.Name, Source: s.From, Licence: s.Licence}
	var all []definitions.Definition
	for _, release := range s.Releases {
		found, err := s.read(ctx, release)
		if err != nil {
			return product, fmt.Errorf("reading %s: %w", release, err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(release, "release-"), "v")
		if s.isCatalogue() {
			name = name[:12]
		}
		product.Releases = append(product.Releases, name)
		for _, d := range found {
			same := slices.IndexFunc(all, func(o definitions.Definition) bool { return o.Kind == d.Kind && string(o.Object) == string(d.Object) })
			if same < 0 {
				all = append(all, d)
				same = len(all) - 1
			}
			if !slices.Contains(all[same].Releases, name) {
				all[same].Releases = append(all[same].Releases, name)
			}
			if !slices.Contains(product.Kinds, d.Kind) {
				product.Kinds = append(product.Kinds, d.Kind)
			}
		}
	}
	if len(all) == 0 {
		return product, fmt.Errorf("finding definitions: there are none at %s", strings.Join(s.Paths, ", "))
	}
	slices.Sort(product.Kinds)
	// Definitions of one kind lie side by side: they hardly differ, and compress to the size of one.
	slices.SortStableFunc(all, func(a, b definitions.Definition) int { return strings.Compare(a.Kind, b.Kind) })
	parts := map[string][]definitions.Definition{}
	if s.isCatalogue() {
		product.Parts = catalogueParts
	}
	for _, d := range all {
		name := product.FileName(d.Kind)
		parts[name] = append(parts[name], d)
	}
	for name, part := range parts {
		if err := writePart(filepath.Join(dir, name), part); err != nil {
			return product, err
		}
	}
	return product, nil
}

// catalogueParts is into how many files a catalogue is divided: to check a kind takes the time to unpack one.
const catalogueParts = 8

func writePart(file string, part []definitions.Definition) error {
	text, err := json.Marshal(part)
	if err != nil {
		return err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(16<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	return os.WriteFile(file, w.EncodeAll(text, nil), 0o644)
}
