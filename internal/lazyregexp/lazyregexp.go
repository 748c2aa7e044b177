// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package lazyregexp compiles regular expressions on first use. The function is started again for each build and
// most of its expressions are for rare texts, so compiling all of them at the start would cost more than processing
// a pod does.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled at its first use. It is safe for concurrent use.
type Regexp struct {
	compiled func() *regexp.Regexp
}

// New returns an expression of Go's syntax. One that is wrong panics at its first use.
func New(expression string) *Regexp {
	return &Regexp{compiled: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// MatchString reports whether the text has a match.
func (r *Regexp) MatchString(text string) bool { return r.compiled().MatchString(text) }

// FindString returns the first match, or "".
func (r *Regexp) FindString(text string) string { return r.compiled().FindString(text) }

// FindStringSubmatch returns the first match and its groups, or nil.
func (r *Regexp) FindStringSubmatch(text string) []string {
	return r.compiled().FindStringSubmatch(text)
}

// FindAllStringSubmatch returns the first n matches (n < 0: all) with their groups, or nil.
func (r *Regexp) FindAllStringSubmatch(text string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(text, n)
}

// FindStringIndex returns the start and the end of the first match, or nil.
func (r *Regexp) FindStringIndex(text string) []int { return r.compiled().FindStringIndex(text) }

// FindAllStringIndex returns the starts and ends of the first n matches (n < 0: all), or nil.
func (r *Regexp) FindAllStringIndex(text string, n int) [][]int {
	return r.compiled().FindAllStringIndex(text, n)
}

// FindAllStringSubmatchIndex returns the starts and ends of the first n matches (n < 0: all) and their groups, or nil.
func (r *Regexp) FindAllStringSubmatchIndex(text string, n int) [][]int {
	return r.compiled().FindAllStringSubmatchIndex(text, n)
}

// FindAllSubmatch returns the first n matches (n < 0: all) with their groups, or nil.
func (r *Regexp) FindAllSubmatch(text []byte, n int) [][][]byte {
	return r.compiled().FindAllSubmatch(text, n)
}

// ReplaceAllString returns the text with all matches replaced; $1 is the text of the first group.
func (r *Regexp) ReplaceAllString(text, by string) string {
	return r.compiled().ReplaceAllString(text, by)
}

// ReplaceAllStringFunc returns the text with each match replaced by what a function makes of it.
func (r *Regexp) ReplaceAllStringFunc(text string, by func(match string) string) string {
	return r.compiled().ReplaceAllStringFunc(text, by)
}
