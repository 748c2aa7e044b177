// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// configurationPage describes the keys of the daemon's configuration, from the types and their comments.
func configurationPage(root string) (string, error) {
	structs, err := structsOf(filepath.Join(root, "pipeline/config"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	beginPage(&b, "Configuration", "The keys of the file that `prerig serve --config` and `prerig daemon worker --config` read. Each is a variable, too: `nats.url` is `PRERIG_NATS_URL`."+
		"\n[The daemon](../daemon.md) explains them, and [this file](../../examples/daemon/prerig.yaml) has all of them with their defaults.")
	b.WriteString("\n| key | type | meaning |\n|---|---|---|\n")
	writeKeys(&b, structs, "Config", "")
	return b.String(), nil
}

// structsOf returns the structs of a package by their names.
func structsOf(dir string) (map[string]*ast.StructType, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration's types: %w", err)
	}
	out := map[string]*ast.StructType{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration's types: %w", err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					out[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return out, nil
}

// writeKeys writes the rows of a struct's keys, and after each struct those of its own keys.
func writeKeys(b *strings.Builder, structs map[string]*ast.StructType, name, prefix string) {
	shared := ""
	names := keyNames(structs[name])
	for _, field := range structs[name].Fields.List {
		if field.Tag == nil {
			continue
		}
		key := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("mapstructure")
		key, option, _ := strings.Cut(key, ",")
		inner, shown := typeName(field.Type)
		if option == "squash" {
			writeKeys(b, structs, inner, prefix)
			continue
		}
		if key == "" || key == "-" {
			continue
		}
		if field.Doc != nil { // otherwise the comment of the field above covers both
			shared = field.Doc.Text()
		}
		if structs[inner] != nil {
			shown = strings.Replace(shown, inner, "keys", 1)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", prefix+key, shown, names.Replace(escapeTableCell(shared)))
		if structs[inner] != nil {
			below := prefix + key + "."
			if strings.HasPrefix(shown, "list") {
				below = prefix + key + "[]."
			}
			writeKeys(b, structs, inner, below)
		}
	}
}

// keyNames puts keys of several words in the place of the fields' names.
func keyNames(s *ast.StructType) *strings.Replacer {
	var pairs []string
	for _, field := range s.Fields.List {
		if field.Tag == nil || len(field.Names) != 1 {
			continue
		}
		name := field.Names[0].Name
		key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("mapstructure"), ",")
		if strings.Contains(key, "_") {
			pairs = append(pairs, name, "`"+key+"`")
		}
	}
	return strings.NewReplacer(pairs...)
}

// typeName returns the name of the type inside of lists and pointers, and how the page calls all of it.
func typeName(e ast.Expr) (inner, shown string) {
	switch t := e.(type) {
	case *ast.ArrayType:
		inner, shown = typeName(t.Elt)
		return inner, "list of " + shown
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.MapType:
		inner, shown = typeName(t.Value)
		return inner, "map of " + shown
	case *ast.SelectorExpr:
		return t.Sel.Name, strings.ToLower(t.Sel.Name)
	case *ast.Ident:
		switch t.Name {
		case "bool":
			return t.Name, "true or false"
		case "int", "int64", "float64":
			return t.Name, "number"
		}
		return t.Name, t.Name
	}
	return "", "any"
}
