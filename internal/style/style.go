// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package style measures how the sources are written: the words of comments and of documentation, the names of functions,
// methods per type, long lines, and statements that hide in the initialiser of an unrelated condition. make style prints the
// figures, and make verify-style fails on what CONTRIBUTING.md rules out.
package style

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Source is one parsed Go file.
type Source struct {
	Path string // relative to the directory that was scanned, with slashes
	Test bool   // a _test.go file
	File *ast.File
	Text []byte
}

// Tree holds the hand-written Go files below a directory, all with positions in Set. Generated files and test data are
// left out.
type Tree struct {
	Set     *token.FileSet
	Sources []Source
}

// Problem is a place that breaks a rule of the style guide.
type Problem struct {
	Place   string // file:line, or the directory and the name of a type
	Message string
}

// String returns the problem in the form that compilers print.
func (p Problem) String() string {
	return p.Place + ": " + p.Message
}

// ReadTree parses the Go files below root. It returns an error for a file that cannot be read or parsed.
func ReadTree(root string) (*Tree, error) {
	tree := &Tree{Set: token.NewFileSet()}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skippedDirectory(entry.Name()) && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		return tree.add(root, path)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the sources below %s: %w", root, err)
	}
	return tree, nil
}

// skippedDirectory reports whether a directory holds no hand-written sources of the project.
func skippedDirectory(name string) bool {
	return name == "testdata" || name == "dist" || name == "node_modules" || strings.HasPrefix(name, ".")
}

func (t *Tree) add(root, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if isGeneratedFile(text) {
		return nil
	}
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	name := filepath.ToSlash(relative)
	file, err := parser.ParseFile(t.Set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing %s: %w", path, err)
	}
	t.Sources = append(t.Sources, Source{Path: name, Test: strings.HasSuffix(name, "_test.go"), File: file, Text: text})
	return nil
}

// isGeneratedFile reports whether one of the first five lines marks the file as generated.
func isGeneratedFile(text []byte) bool {
	head := text
	for range 5 {
		line, rest, found := bytes.Cut(head, []byte("\n"))
		if bytes.Contains(line, []byte("Code generated")) {
			return true
		}
		if !found {
			return false
		}
		head = rest
	}
	return false
}

// Main runs the command: it prints the figures of a tree, or with -check the problems. It returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("style", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "directory to scan")
	check := flags.Bool("check", false, "print problems and fail if there are any")
	list := flags.Bool("list", false, "print each word of the list with its place")
	if flags.Parse(args) != nil {
		return 2
	}
	tree, err := ReadTree(*root)
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 2
	}
	switch {
	case *check:
		scripts, err := scriptProblems(*root)
		if err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return 2
		}
		return printProblems(append(tree.Problems(), scripts...), stdout)
	case *list:
		return printWords(tree, stdout)
	default:
		return printFigures(tree, *root, stdout, stderr)
	}
}

func printProblems(problems []Problem, stdout io.Writer) int {
	for _, problem := range problems {
		fmt.Fprintln(stdout, problem)
	}
	if len(problems) > 0 {
		return 1
	}
	return 0
}

func printWords(tree *Tree, stdout io.Writer) int {
	for _, use := range tree.listedWords() {
		fmt.Fprintf(stdout, "%s: %s: %s\n", use.place, use.word, use.line)
	}
	return 0
}

// longLines counts the lines of a text with more columns than limit; a tab counts as four.
func longLines(text []byte, limit int) (long, all int) {
	for line := range bytes.Lines(text) {
		all++
		columns := utf8.RuneCount(bytes.TrimRight(line, "\n")) + 3*bytes.Count(line, []byte("\t"))
		if columns > limit {
			long++
		}
	}
	return long, all
}
