// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryFeatureIsRead looks for each constant in the sources of the module: a row that nobody reads would say something
// about a version, and changing it would change nothing.
func TestEveryFeatureIsRead(t *testing.T) {
	constants := constantsOf(t, "table.go")
	rows := map[Name]bool{}
	for _, row := range table {
		rows[row.name] = true
	}
	readers := map[string]int{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "feature" {
					readers[selector.Sel.Name]++
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(constants) < 100 || len(constants) != len(rows) {
		t.Errorf("there are %d constants and %d rows", len(constants), len(rows))
	}
	for constant, name := range constants {
		if !rows[Name(name)] {
			t.Errorf("%s has no row", constant)
		}
		if readers[constant] == 0 {
			t.Errorf("nothing reads %s (%q)", constant, name)
		}
	}
}

// constantsOf returns the constants of a file with their texts.
func constantsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value, _ := spec.(*ast.ValueSpec)
			if kind, ok := value.Type.(*ast.Ident); !ok || kind.Name != "Name" {
				continue
			}
			text, _ := value.Values[0].(*ast.BasicLit)
			out[value.Names[0].Name] = strings.Trim(text.Value, `"`)
		}
	}
	return out
}
