// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/prerig/prerig/fn/result"
)

// hostile are texts that mean something to hosts, terminals or renderers.
var hostile = []string{
	"<script>alert(1)</script>", "<!-- ", "<details><summary>x</summary>", "<img src=x onerror=y>", "&lt;b&gt; &#64;everyone",
	"@everyone", "@org/team hello", "foo@sha256:00", "fixes #1", "Closes: org/repo#12", "resolves https://example.com/issues/1", "Fixed PROJ-7", "closes !12", "fix GH-3",
	"[a](http://evil.example)", "![a](http://evil.example/x.png)", "[a]: http://evil.example", "http://evil.example/?q=1", "www.evil.example", "a@evil.example",
	"`", "``", "```", "````\n```\n", "~~~", "` ``` `", "a`b``c", "`@a`", "\n```\n@everyone\n", "\n\n# heading\n\n", "\r# heading\r", "\n/close\n/merge", "\n/approve",
	"---", "| a | b |\n|---|---|", "- [ ] task", "1. list", "> quote", "> [!WARNING]", "**bold** _it_ ~~no~~", "\\`", "\\", "$`x`$", "$$x$$", "[^1]: note", ":tada:",
	"\u202egnp.exe", "\u2066x\u2069", "\x1b[31mred", "\x00", "\u200b", "\u2028# heading", "\u0085# heading", "\u2060", "\ufeff", "\xff\xfe", "\U000e0041",
	"everyone", "evil", strings.Repeat("x", 5000), strings.Repeat("`", 500), strings.Repeat("fixes #1 ", 300), "{{ include }}", "[skip ci]", "AB#12", "Resolve AB#12", " ", "",
}

// yamlText writes a text as a YAML scalar in double quotes.
func yamlText(s string) string {
	s = strings.ToValidUTF8(s, "?")
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteString("\\" + string(r))
		case r < 0x20 || r >= 0x7f && r <= 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r > 0xffff:
			fmt.Fprintf(&out, "\\U%08X", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String() + "\""
}

// blockText writes a text as lines of a YAML block scalar, as raw as YAML takes it.
func blockText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return "    first\n    " + strings.ReplaceAll(s, "\n", "\n    ") + "\n"
}

// hostileChange has a text everywhere where others can write.
func hostileChange(s string) Change {
	object := func(version string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + yamlText("n"+s) + "\n  namespace: " + yamlText(s) + "\n  annotations:\n    a: " + yamlText(s) +
			"\ndata:\n  version: " + yamlText(version) + "\n  block: |\n" + blockText(s+version) + "\n"
	}
	pod := func(image string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + yamlText("p"+s) + "\nspec:\n  containers:\n  - name: " + yamlText(s) + "\n    image: " + yamlText(image) + "\n"
	}
	gone := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: " + yamlText("g"+s) + "\n---\napiVersion: " + yamlText(s+"/v1") + "\nkind: " + yamlText("K"+s) + "\nmetadata:\n  name: x\n"
	finding := result.Result{Severity: result.Warning, Message: s, ResourceRef: &result.ResourceRef{Kind: s, Name: s, Namespace: s}, Tags: map[string]string{result.TagCode: s}}
	return Change{Whole: s, Pipelines: []Pipeline{{
		Name: s, Refused: s, Command: s, PolicyBefore: s, PolicyAfter: s + "2", ToolBefore: s, ToolAfter: s,
		Sources:  []Source{{URL: s, MountPath: s, Before: Revision{Revision: s}, After: Revision{Revision: s + "2", Author: s, Subject: s}}},
		Before:   map[string][]byte{"a": []byte(object("1")), "p": []byte(pod(s)), "g": []byte(gone), s + ".txt": []byte(s + "\n" + s)},
		After:    map[string][]byte{"a": []byte(object("2" + s)), "p": []byte(pod("new" + s)), s + ".txt": []byte(s + "\nother\n```\n" + s), "raw" + s: []byte(s)},
		Findings: Findings{After: result.Results{finding}, BeforeKnown: true},
	}, {Name: s, NotCompared: s}}}
}

// ownHeadings are all headings that a body may have.
var ownHeadings = []string{"Not compared", "Would be refused", "Deleted", "New findings", "What the source changed", "What the injection changed", "Encrypted", "Requests and limits",
	"Images", "Provenance", "To make it again"}

// checkInert parses a body as GitHub does, and reports what of it is neither our own words nor code.
func checkInert(t *testing.T, body string, links ...string) {
	t.Helper()
	source := []byte(body)
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote))
	err := ast.Walk(md.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock, *ast.RawHTML, *ast.Image, *ast.ThematicBreak, *ast.Link, *ast.CodeBlock, *ast.LinkReferenceDefinition:
			t.Errorf("there is a %s", n.Kind())
		case *ast.AutoLink:
			if !slices.Contains(links, string(n.URL(source))) {
				t.Errorf("there is a link to %q", n.URL(source))
			}
		case *ast.Heading:
			if title := string(n.Lines().Value(source)); n.Level != 4 || !slices.Contains(ownHeadings, title) {
				t.Errorf("there is a heading %q of level %d", title, n.Level)
			}
		case *ast.FencedCodeBlock:
			if string(n.Language(source)) != "diff" {
				t.Errorf("there is a block of %q", n.Language(source))
			}
			for i := range n.Lines().Len() {
				at := n.Lines().At(i)
				if line := string(at.Value(source)); !strings.ContainsAny(line[:1], "+- @\\") {
					t.Errorf("a line of a difference has no sign: %q", line)
				}
			}
		case *ast.Text:
			if _, code := n.Parent().(*ast.CodeSpan); !code {
				checkOwnWords(t, string(n.Value(source)))
			}
		}
		switch n.Kind() {
		case ast.KindDocument, ast.KindParagraph, ast.KindTextBlock, ast.KindText, ast.KindString, ast.KindCodeSpan, ast.KindFencedCodeBlock, ast.KindHeading, ast.KindList,
			ast.KindListItem, ast.KindBlockquote, ast.KindEmphasis, ast.KindAutoLink:
		default:
			if name := n.Kind().String(); !strings.HasPrefix(name, "Table") {
				t.Errorf("there is a %s", name)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Error(err)
	}
	checkRaw(t, body)
	if t.Failed() {
		t.Logf("%.6000s", body)
	}
}

// ownWords is what words of ours are made of. None of them is a mention, an issue, a link or markup.
var ownWords = regexp.MustCompile(`^[A-Za-z0-9 .,:;()/+→−…!\[\]>|*'-]*$`)

// standsAlone is a kind of hostileChange where nothing but letters and digits is in it: that may stand outside of code.
var standsAlone = regexp.MustCompile(`\bK[A-Za-z0-9]+\b`)

// checkOwnWords takes no text outside of code that we could not have written.
func checkOwnWords(t *testing.T, words string) {
	t.Helper()
	rest := standsAlone.ReplaceAllString(words, "")
	if !ownWords.MatchString(words) || strings.Contains(words, "://") || strings.Contains(rest, "evil") || strings.Contains(rest, "everyone") {
		t.Errorf("outside of code: %q", words)
	}
}

// gitlabClosing is what GitLab looks for in the raw text of a description (config/initializers/1_settings.rb of GitLab 17, by its documented
// default), GitHub and Gitea in less.
var gitlabClosing = regexp.MustCompile(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?):? +(?:issues? +)?(?:[\w./-]*#\d+|https?://\S+/issues/\d+|[A-Z][A-Z0-9_]+-\d+|[\w./-]*!\d+)`)

// checkRaw looks at the raw text, as hosts do for commands and keywords.
func checkRaw(t *testing.T, body string) {
	t.Helper()
	if found := gitlabClosing.FindString(body); found != "" {
		t.Errorf("it closes an issue: %q", found)
	}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "/") {
			t.Errorf("a line is a command: %q", line)
		}
		for _, r := range strings.TrimSuffix(line, "\n") {
			if r != '\t' && string(r) != wordJoiner && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
				t.Errorf("a character is not seen: %U in %q", r, line)
			}
		}
		if len(line) > 6000 {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
}

func TestHostileTextsAreInert(t *testing.T) {
	for i, s := range hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for _, limit := range []int{Unlimited, LimitGitHub, LimitAzureDevOps, 700} {
				got, _ := body(t, hostileChange(s), limit)
				var links []string
				if plainAddress.MatchString(s) {
					links = []string{s}
				}
				checkInert(t, got, links...)
			}
		})
	}
}

// TestOwnBodiesPassTheChecks: the checks of hostile bodies know our own.
func TestOwnBodiesPassTheChecks(t *testing.T) {
	for _, c := range []Change{upgrade(t, 3), hostileChange("plain")} {
		got, _ := body(t, c, LimitGitHub)
		checkInert(t, got)
		if !strings.Contains(got, "#### Provenance") {
			t.Error(got)
		}
	}
}

func FuzzInert(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 3000)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if len(s) > 2000 {
			return
		}
		if limit = limit % 8000; limit < 0 {
			limit = -limit
		}
		got, _ := body(t, hostileChange(s), limit)
		var links []string
		if plainAddress.MatchString(s) {
			links = []string{s}
		}
		checkInert(t, got, links...)
	})
}
