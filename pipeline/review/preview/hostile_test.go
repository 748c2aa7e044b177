// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/review"
)

// TestForksThatClaimToBeBranches: names of heads that forks choose are those of no branch, or of one at another commit. None is
// previewed with the secrets of the repository.
func TestForksThatClaimToBeBranches(t *testing.T) {
	for name, edit := range map[string]func(b *bed, in *pullrequest.Incoming){
		"the name of another branch":       func(_ *bed, in *pullrequest.Incoming) { in.Head = "main" },
		"a name with dots":                 func(_ *bed, in *pullrequest.Incoming) { in.Head = "../heads/topic" },
		"a full reference":                 func(_ *bed, in *pullrequest.Incoming) { in.Head = "refs/heads/topic" },
		"an option":                        func(_ *bed, in *pullrequest.Incoming) { in.Head = "--upload-pack=evil" },
		"a pattern":                        func(_ *bed, in *pullrequest.Incoming) { in.Head = "*" },
		"a line break":                     func(_ *bed, in *pullrequest.Incoming) { in.Head = "topic\nrefs/heads/main" },
		"a blank":                          func(_ *bed, in *pullrequest.Incoming) { in.Head = " topic" },
		"another case":                     func(_ *bed, in *pullrequest.Incoming) { in.Head = "TOPIC" },
		"a hidden character":               func(_ *bed, in *pullrequest.Incoming) { in.Head = "topic\u200b" },
		"a megabyte":                       func(_ *bed, in *pullrequest.Incoming) { in.Head = strings.Repeat("x", 1<<20) },
		"nothing":                          func(_ *bed, in *pullrequest.Incoming) { in.Head = "" },
		"a fork with the name of a branch": func(_ *bed, in *pullrequest.Incoming) { in.Fork = true },
		"another commit of a branch":       func(_ *bed, in *pullrequest.Incoming) { in.HeadCommit = strings.Repeat("a", 40) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, "")
			edit(b, &b.host.in)
			b.event()
			b.try()
			one := b.try()
			if b.renders() > 0 && !one.Fork {
				t.Errorf("it is rendered with the secrets of the repository: %+v", one)
			}
			for _, s := range b.host.statuses {
				if s.State == pullrequest.CommitSuccess && !one.Fork {
					t.Errorf("it is reported as %+v", s)
				}
			}
		})
	}
}

// TestEventsOfPreviewsThatNameOthers: only pull requests of the repository of a pipeline with previews are noted, whatever an event
// names besides.
func TestEventsOfPreviewsThatNameOthers(t *testing.T) {
	b := newBed(t, "")
	for name, change := range map[string]event.PullChange{
		"another repository":     {URLs: []string{b.server.Repository(t, "other").URL}, Number: 7, Base: "main"},
		"a repository above":     {URLs: []string{strings.TrimSuffix(b.repository.URL, "/config.git")}, Number: 7, Base: "main"},
		"a repository with dots": {URLs: []string{b.repository.URL + "/../other.git"}, Number: 7, Base: "main"},
		"another host":           {URLs: []string{"https://evil.example.net/config.git"}, Number: 7, Base: "main"},
		"a host in front of it":  {URLs: []string{"https://" + strings.TrimPrefix(b.repository.URL, "http://") + "@evil.example.net"}, Number: 7, Base: "main"},
		"no repository":          {Number: 7, Base: "main"},
		"thousands of no use":    {URLs: slicesOf("https://evil.example.net/%d.git", 5000), Number: 7, Base: "main"},
	} {
		e := event.Event{ID: "e", Changes: []event.Change{{Pull: &change}}}
		if err := b.Note(context.WithoutCancel(t.Context()), e, time.Now().UTC()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := b.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if known := b.Store.Previews(); len(known) > 0 {
			t.Errorf("%s: noted %q", name, known)
		}
	}
}

func slicesOf(format string, count int) (out []string) {
	for i := range count {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

// TestCommentsOfPreviewsAreInert: what a fork chooses comes into comments with reasons for which it was not rendered, and with what
// would change. No person is mentioned, nothing is linked or formatted, and the comment is not longer than the host takes.
func TestCommentsOfPreviewsAreInert(t *testing.T) {
	for _, text := range []string{
		"@org/everyone please look", "![x](https://evil.example.net/x.png)", "[approve](https://evil.example.net)", "<img src=x onerror=alert(1)>",
		"closes #1, fixes org/other#2", "```\n@ann\n```", "</details>\n# Approved by @ann", "\u202eevil", "/merge\n/approve", "https://evil.example.net/@ann",
		"[prerig-preview]: # (0123456789abcdef 0123456789abcdef0123456789abcdef)", strings.Repeat("@ann ", 1<<18),
	} {
		b := newBed(t, "")
		a := &attempt{p: b.Previewer, log: b.Previewer.Log, one: b.one(), conv: b.host, in: &b.host.in}
		found := &compared{reviewed: []review.Pipeline{{Name: bedKey, Refused: text}}}
		got, err := a.boundedCommentText(t.Context(), found, 10_000, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 10_000 {
			t.Errorf("%.40q: the comment has %d bytes", text, len(got))
		}
		for _, line := range outsideOfFences(got) {
			for _, live := range []string{"@org", "@ann", "](http", "<img", "#1", "</details>\n#", "/merge", "\u202e", "[prerig-preview]"} {
				if strings.Contains(withoutCode(line), live) {
					t.Errorf("%.40q: the comment has %q outside of code: %.200q", text, live, line)
				}
			}
		}
	}
}

// outsideOfFences returns the lines of Markdown that are not in a fenced block.
func outsideOfFences(text string) (out []string) {
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		mark := strings.TrimLeft(line, " ")
		ticks := mark[:len(mark)-len(strings.TrimLeft(mark, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence != "" && strings.HasPrefix(ticks, fence) && strings.TrimSpace(strings.TrimLeft(mark, "`")) == "":
			fence = ""
		case fence == "":
			out = append(out, line)
		}
	}
	return out
}

// withoutCode removes the spans of code from a line of Markdown.
func withoutCode(line string) string {
	var out strings.Builder
	for {
		at := strings.IndexByte(line, '`')
		if at < 0 {
			return out.String() + line
		}
		out.WriteString(line[:at])
		rest := strings.TrimLeft(line[at:], "`")
		ticks := line[at : len(line)-len(rest)]
		end := strings.Index(rest, ticks)
		for end >= 0 && strings.HasPrefix(rest[end+len(ticks):], "`") {
			run := len(rest[end:]) - len(strings.TrimLeft(rest[end:], "`"))
			next := strings.Index(rest[end+run:], ticks)
			if next < 0 {
				end = -1
				break
			}
			end += run + next
		}
		if end < 0 {
			out.WriteString(ticks)
			line = rest
			continue
		}
		line = rest[end+len(ticks):]
	}
}
