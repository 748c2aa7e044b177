// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// block is a fenced block of a Markdown page, with what the comments right above it say. Readers do not see those:
//
//	<!-- not run: REASON -->             the commands are not run
//	<!-- exit: 1 -->                     the exit code of each command
//	<!-- in: an empty directory -->      where this block and those after it run;
//	<!-- in: a directory with manifests --> that is where a page begins, but for a repository of its own
//	<!-- file: NAME -->                  the block is written to that file
//	<!-- spec of InjectionPolicy -->     the block is a part of an object's spec
//
// A block of sh is run as it is. In a block of console each line that begins with "$ " is a command, and the lines up to the next
// one are what it prints, on both streams; "..." stands for any lines.
type block struct {
	lang, text       string
	line             int // of the fence
	notRun, in, file string
	specOf           string
	exit             int
}

// The places where commands run.
const (
	inEmpty     = "an empty directory"
	inManifests = "a directory with manifests"
)

// step is one command of a page.
type step struct {
	command string
	line    int
	shown   *string // what the page says that it prints, if it does
}

var (
	mark         = regexp.MustCompile(`^<!-- (not run|exit|in|file): (.+) -->$|^<!-- (spec of) (\w+) -->$`)
	continuation = regexp.MustCompile(`\\\n\s*`)
)

// parseMarkdown returns the fenced blocks of a page.
func parseMarkdown(t *testing.T, page string) []block {
	t.Helper()
	var blocks []block
	var next block
	open := false
	for i, line := range strings.Split(string(read(t, page)), "\n") {
		fence := strings.HasPrefix(line, "```")
		switch {
		case open && fence:
			blocks, next, open = append(blocks, next), block{}, false
		case open:
			next.text += line + "\n"
		case fence:
			next.lang, next.line, open = strings.TrimPrefix(line, "```"), i+1, true
		case strings.HasPrefix(line, "<!--"):
			next.mark(t, page, i+1, line)
		case strings.TrimSpace(line) != "" && next != block{}:
			t.Fatalf("%s:%d: a mark stands above no block", page, i+1)
		}
	}
	if open {
		t.Fatalf("%s:%d: the block does not end", page, next.line)
	}
	return blocks
}

func (b *block) mark(t *testing.T, page string, line int, text string) {
	t.Helper()
	found := mark.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s:%d: nothing is known of the mark %s", page, line, text)
	}
	value := found[2]
	switch found[1] {
	case "not run":
		b.notRun = value
	case "file":
		b.file = value
	case "in":
		b.in = value
		if value != inEmpty && value != inManifests {
			t.Fatalf("%s:%d: there is no place %q", page, line, value)
		}
	case "exit":
		code, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("%s:%d: %v", page, line, err)
		}
		b.exit = code
	default:
		b.specOf = found[4]
	}
}

func (b block) isShell() bool { return b.lang == "sh" || b.lang == "console" }

// steps are the commands of a block, each with what is shown of it.
func (b block) steps() []step {
	if b.lang == "sh" {
		return []step{{command: b.text, line: b.line + 1}}
	}
	var steps []step
	goesOn := false
	for i, line := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case begins:
			steps = append(steps, step{command: command, line: b.line + 1 + i, shown: new(string)})
		case goesOn:
			steps[len(steps)-1].command += "\n" + line
		case len(steps) > 0:
			*steps[len(steps)-1].shown += line + "\n"
		}
		goesOn = (begins || goesOn) && strings.HasSuffix(line, `\`)
	}
	return steps
}

// object is the text of a YAML block as an object of its own, where it is only a part of one.
func (b block) object() string {
	if b.specOf == "" {
		return b.text
	}
	kind := b.specOf
	spec := "  " + strings.ReplaceAll(strings.TrimSuffix(b.text, "\n"), "\n", "\n  ") + "\n"
	if kind == "RenderPipeline" && !strings.Contains("\n"+b.text, "\nsource:") {
		spec += "  source: {git: {url: https://git.example.com/org/apps.git}}\n"
	}
	return "apiVersion: prerig.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: example}\nspec:\n" + spec
}

// matches reports whether a text is as shown, where a line "..." stands for any lines.
func matches(shown, text string) bool {
	var pattern strings.Builder
	for line := range strings.Lines(shown) {
		if line == "...\n" {
			pattern.WriteString(`(.*\n)*?`)
		} else {
			pattern.WriteString(regexp.QuoteMeta(line))
		}
	}
	return regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(text)
}

// TestMatches keeps the comparison from being one that cannot fail.
func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		shown, text string
		want        bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\n", "a\nb\n", false},
		{"a\n...\n", "a\nb\nc\n", true},
		{"...\nc\n", "a\nb\nc\n", true},
		{"a\n...\nc\n", "a\nc\n", true},
		{"a\n...\nd\n", "a\nb\nc\n", false},
		{"", "a\n", false},
		{"a.b\n", "axb\n", false},
	} {
		if got := matches(tc.shown, tc.text); got != tc.want {
			t.Errorf("matches(%q, %q) is %v", tc.shown, tc.text, got)
		}
	}
}
