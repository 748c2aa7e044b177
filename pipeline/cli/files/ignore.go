// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// IgnoreName is the name of the files that exclude files below their directory, by the rules of gitignore.
const IgnoreName = ".prerigignore"

// ignoreRule is one line of an ignore file.
type ignoreRule struct {
	pattern   string // as doublestar reads it, below the directory of the file
	include   bool   // the line begins with an exclamation mark
	directory bool   // only directories are meant
}

// ruleSet is an ignore file.
type ruleSet struct {
	base  string // the directory that it is in; absolute, behind all links
	rules []ignoreRule
}

// ignoreFiles are the ignore files that hold for a directory. The last rule of the last file wins.
type ignoreFiles []ruleSet

// isIgnored reports whether a path is not to be read. What is below an ignored directory is not asked about.
func (all ignoreFiles) isIgnored(path string, isDirectory bool) bool {
	for i := len(all) - 1; i >= 0; i-- {
		rel, err := filepath.Rel(all[i].base, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		rel = filepath.ToSlash(rel)
		rules := all[i].rules
		for j := len(rules) - 1; j >= 0; j-- {
			if rules[j].directory && !isDirectory {
				continue
			}
			if is, err := doublestar.Match(rules[j].pattern, rel); is && err == nil {
				return !rules[j].include
			}
		}
	}
	return false
}

// parseRules reads the lines of an ignore file.
func parseRules(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		if r, ok := parseRule(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// parseRule parses one line according to gitignore(5); ok is false for one without a rule.
func parseRule(line string) (r ignoreRule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	line, r.include = strings.CutPrefix(line, "!")
	line, r.directory = strings.CutSuffix(line, "/")
	if line == "" {
		return r, false
	}
	if !strings.Contains(line, "/") {
		line = "**/" + line // at any depth
	}
	line = strings.TrimPrefix(line, "/")
	if strings.HasSuffix(line, "/**") {
		line += "/*" // all that is in the directory, and not the directory itself
	}
	r.pattern = literalBraces(line)
	return r, true
}

// literalBraces escapes the braces, which have a meaning to doublestar and none in gitignore.
func literalBraces(pattern string) string {
	if !strings.ContainsAny(pattern, "{}") {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '\\':
			b.WriteByte(c)
			if i++; i == len(pattern) {
				return b.String()
			}
		case '{', '}':
			b.WriteByte('\\')
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

// CheckPattern returns an error for a pattern that cannot match, because a bracket in it is not closed.
func CheckPattern(pattern string) error {
	if r, ok := parseRule(pattern); ok && !doublestar.ValidatePattern(r.pattern) {
		return fmt.Errorf("invalid pattern %q; patterns use the syntax of .gitignore", pattern)
	}
	return nil
}

// ignoreFilesAbove returns the ignore files of the parent directories of root: up to the root of its Git
// repository, or otherwise up to the current directory.
func (w *dirWalk) ignoreFilesAbove() ignoreFiles {
	var dirs []string
	top := repositoryRoot(w.real)
	if top == "" {
		top, _ = resolvePath(".") // without one, root has no parents to read
	}
	if !isBelow(top, w.real) {
		return nil
	}
	for dir := w.real; dir != top; {
		dir = filepath.Dir(dir)
		dirs = append([]string{dir}, dirs...)
	}
	var all ignoreFiles
	for _, dir := range dirs {
		all = w.addIgnoreFile(all, dir)
	}
	return all
}

// repositoryRoot returns the root of the Git repository around a directory; empty if none exists.
func repositoryRoot(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// addIgnoreFile adds the ignore file of a directory, where it has one.
func (w *dirWalk) addIgnoreFile(all ignoreFiles, dir string) ignoreFiles {
	path := filepath.Join(dir, IgnoreName)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return all
	}
	text, err := os.ReadFile(path)
	if err != nil {
		w.addError(path, err)
		return all
	}
	return append(all[:len(all):len(all)], ruleSet{base: dir, rules: parseRules(string(text))})
}
