// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// countedWords are rare in what engineers write about code, and frequent where sentences are built around "what" and
// "who". Their number per thousand words is a figure of the table.
var countedWords = wordPattern("says", "say", "said", "told", "tell", "tells", "nobody", "somebody", "whoever", "gives",
	"give", "given",
	"stands", "stand", "gone", "goes", "there", "nothing", "else", "anew", "takes")

// forbiddenWords have no use in a comment of this project.
var forbiddenWords = wordPattern("whoever", "nobody", "somebody", "says", "said", "told", "stands", "gives", "gone",
	"anew")

func wordPattern(words ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(words, "|") + `)\b`)
}

var (
	anyWord = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	// quoted is text of others within a comment or a page: code, string literals and addresses.
	quoted = regexp.MustCompile("`[^`]*`" + `|"[^"]*"|https?://\S+`)
)

// wordUse is one use of a listed word.
type wordUse struct {
	place string // file:line
	word  string
	line  string
}

// eachCommentLine calls visit for each line of the comments of all files without tests, quotations and the file's
// exported identifiers removed.
func (t *Tree) eachCommentLine(visit func(position token.Position, line string)) {
	for _, source := range t.Sources {
		if source.Test {
			continue
		}
		identifiers := exportedIdentifiers(source.File)
		for _, group := range source.File.Comments {
			for _, comment := range group.List {
				position := t.Set.Position(comment.Pos())
				for offset, line := range strings.Split(comment.Text, "\n") {
					if strings.HasPrefix(line, "//go:") || strings.Contains(line, "SPDX-") {
						continue
					}
					at := position
					at.Line += offset
					visit(at, identifierPattern.ReplaceAllStringFunc(quoted.ReplaceAllString(line, ""), func(word string) string {
						if identifiers[word] {
							return ""
						}
						return word
					}))
				}
			}
		}
	}
}

var identifierPattern = regexp.MustCompile(`\b[A-Z]\w*`)

// exportedIdentifiers returns the exported identifiers that a file declares or uses.
func exportedIdentifiers(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if identifier, ok := node.(*ast.Ident); ok && identifier.IsExported() {
			names[identifier.Name] = true
		}
		return true
	})
	return names
}

// listedWords returns the uses of countedWords in comments.
func (t *Tree) listedWords() []wordUse {
	var uses []wordUse
	t.eachCommentLine(func(position token.Position, line string) {
		for _, word := range countedWords.FindAllString(line, -1) {
			uses = append(uses, wordUse{place: placeOf(position), word: strings.ToLower(word), line: strings.TrimSpace(line)})
		}
	})
	return uses
}

// forbiddenWordProblems returns the uses of forbiddenWords in comments.
func (t *Tree) forbiddenWordProblems() []Problem {
	var problems []Problem
	t.eachCommentLine(func(position token.Position, line string) {
		for _, word := range forbiddenWords.FindAllString(line, -1) {
			problems = append(problems, wordProblem(placeOf(position), "a comment", word))
		}
	})
	return problems
}

// wordCount is the number of words of a text, and how many of them are listed.
type wordCount struct {
	words, listed int
}

// perThousand returns the listed words per thousand words.
func (c wordCount) perThousand() float64 {
	if c.words == 0 {
		return 0
	}
	return 1000 * float64(c.listed) / float64(c.words)
}

func (c *wordCount) add(text string) {
	c.words += len(anyWord.FindAllString(text, -1))
	c.listed += len(countedWords.FindAllString(text, -1))
}

// commentWords counts the words of comments.
func (t *Tree) commentWords() wordCount {
	var count wordCount
	t.eachCommentLine(func(_ token.Position, line string) {
		count.add(line)
	})
	return count
}

// pageWords counts the words of the Markdown pages below root, without blocks of code and generated pages.
func pageWords(root string) (wordCount, error) {
	var count wordCount
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skippedDirectory(entry.Name()) && path != root:
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".md") || entry.Name() == "CHANGELOG.md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		code := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
				continue
			}
			if !code {
				count.add(quoted.ReplaceAllString(line, ""))
			}
		}
		return nil
	})
	return count, err
}
