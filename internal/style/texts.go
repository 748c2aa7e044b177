// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// messageWords is the least number of words of a string literal that is read as a sentence for users.
const messageWords = 4

// messageProblems returns the uses of forbiddenWords in the string literals of programs, which reach users as messages,
// help and errors.
func (t *Tree) messageProblems() []Problem {
	var problems []Problem
	for _, source := range t.Sources {
		if source.Test {
			continue
		}
		ast.Inspect(source.File, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil || len(anyWord.FindAllString(text, messageWords)) < messageWords {
				return true
			}
			for _, word := range forbiddenWords.FindAllString(quoted.ReplaceAllString(text, ""), -1) {
				problems = append(problems, wordProblem(placeOf(t.Set.Position(literal.Pos())), "a message", word))
			}
			return true
		})
	}
	return problems
}

// placeOf returns file:line.
func placeOf(position token.Position) string {
	return fmt.Sprintf("%s:%d", position.Filename, position.Line)
}

func wordProblem(place, where, word string) Problem {
	message := fmt.Sprintf("%s uses %q: name the subject and use a technical verb", where, strings.ToLower(word))
	return Problem{Place: place, Message: message}
}

// scriptComment is a comment of YAML, a shell or make.
var scriptComment = regexp.MustCompile(`(?:^|\s)#+ (.*)$`)

// scriptProblems returns the uses of forbiddenWords in the comments of scripts, Makefiles and YAML below root.
func scriptProblems(root string) ([]Problem, error) {
	var problems []Problem
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && skippedScripts(entry.Name()):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !isScript(entry.Name(), text) {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			comment := scriptComment.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if comment == nil {
				continue
			}
			for _, word := range forbiddenWords.FindAllString(quoted.ReplaceAllString(comment[1], ""), -1) {
				problems = append(problems, wordProblem(fmt.Sprintf("%s:%d", filepath.ToSlash(name), number), "a comment", word))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the scripts below %s: %w", root, err)
	}
	return problems, nil
}

// skippedScripts reports whether a directory holds no scripts or YAML that the project wrote.
func skippedScripts(name string) bool {
	switch name {
	case ".ci", ".github":
		return false
	}
	return skippedDirectory(name)
}

// isScript reports whether # begins a comment in a file.
func isScript(name string, text []byte) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".sh", ".mk":
		return !isGeneratedFile(text)
	}
	return name == "Makefile" || name == "Dockerfile" || bytes.HasPrefix(text, []byte("#!"))
}
