// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"fmt"
	"go/ast"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

const (
	columnLimit   = 120
	functionLimit = 60
	fileLimit     = 400
	methodLimit   = 25
)

// functionFigures counts the functions of a tree without its tests.
type functionFigures struct {
	all, unexported, oneWord, threeWords, overLimit int
}

func (t *Tree) functionFigures() functionFigures {
	var figures functionFigures
	for _, source := range t.Sources {
		if source.Test {
			continue
		}
		for _, declaration := range source.File.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			figures.all++
			if function.Body != nil {
				lines := t.Set.Position(function.End()).Line - t.Set.Position(function.Pos()).Line + 1
				if lines > functionLimit {
					figures.overLimit++
				}
			}
			name := function.Name.Name
			if ast.IsExported(name) || name == "main" || name == "init" {
				continue
			}
			figures.unexported++
			words := camelWords(name)
			switch {
			case words == 1:
				figures.oneWord++
			case words >= 3:
				figures.threeWords++
			}
		}
	}
	return figures
}

// camelWords counts the words of an identifier in camel case; a run of capitals is one word, apart from its
// last letter where that begins the next word.
func camelWords(name string) int {
	words := 1
	runes := []rune(name)
	for i := 1; i < len(runes); i++ {
		afterWord := !unicode.IsUpper(runes[i-1])
		beforeWord := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if unicode.IsUpper(runes[i]) && (afterWord || beforeWord) {
			words++
		}
	}
	return words
}

// methodCounts returns the number of methods of each type, by package directory and type name. Tests do not count.
func (t *Tree) methodCounts() map[string]int {
	counts := map[string]int{}
	for _, source := range t.Sources {
		if source.Test {
			continue
		}
		for _, declaration := range source.File.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && function.Recv != nil {
				counts[path.Dir(source.Path)+"."+receiverName(function.Recv.List[0].Type)]++
			}
		}
	}
	return counts
}

// methodProblems returns the types with more methods than they may have.
func (t *Tree) methodProblems() []Problem {
	var problems []Problem
	counts := t.methodCounts()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > methodLimit {
			message := fmt.Sprintf("it has %d methods, and may have %d: split it by responsibility", counts[name],
				methodLimit)
			problems = append(problems, Problem{Place: name, Message: message})
		}
	}
	return problems
}

func receiverName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func printFigures(tree *Tree, root string, stdout, stderr io.Writer) int {
	pages, err := pageWords(root)
	if err != nil {
		fmt.Fprintln(stderr, "error: reading the pages:", err)
		return 2
	}
	var lines, long, longFiles int
	for _, source := range tree.Sources {
		if source.Test {
			continue
		}
		over, all := longLines(source.Text, columnLimit)
		lines += all
		long += over
		if all > fileLimit {
			longFiles++
		}
	}
	functions := tree.functionFigures()
	comments := tree.commentWords()
	fmt.Fprintf(stdout, "hand-written lines without tests        %d\n", lines)
	fmt.Fprintf(stdout, "listed words per 1,000 of comments      %.1f (%d of %d)\n", comments.perThousand(),
		comments.listed, comments.words)
	fmt.Fprintf(stdout, "listed words per 1,000 of pages         %.1f (%d of %d)\n", pages.perThousand(), pages.listed,
		pages.words)
	fmt.Fprintf(stdout, "unexported functions of one word        %.1f %%\n",
		percent(functions.oneWord, functions.unexported))
	fmt.Fprintf(stdout, "unexported functions of three and more  %.1f %%\n",
		percent(functions.threeWords, functions.unexported))
	fmt.Fprintf(stdout, "functions over %d lines                 %d of %d\n", functionLimit, functions.overLimit,
		functions.all)
	fmt.Fprintf(stdout, "files over %d lines                    %d\n", fileLimit, longFiles)
	fmt.Fprintf(stdout, "lines over %d columns                  %.1f %%\n", columnLimit, percent(long, lines))
	fmt.Fprintf(stdout, "unrelated initialisers                  %d\n", len(tree.unrelatedInitialisers()))
	fmt.Fprintf(stdout, "types with most methods                 %s\n", mostMethods(tree.methodCounts(), 8))
	return 0
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// mostMethods returns the n types with the most methods, most first.
func mostMethods(counts map[string]int, n int) string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	var parts []string
	for _, name := range names[:min(n, len(names))] {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
