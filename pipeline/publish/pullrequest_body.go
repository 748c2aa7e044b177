// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// divider is the line of a body below which everything is a person's. Lines above it are Prerig's.
const divider = "_Below this line is room for people: Prerig leaves it as it is._"

// The line with Prerig's record of its own text is an unused link definition, which no host shows.
const marksStart, marksEnd = "[prerig]: # (", ")"

// bodyMarks records what Prerig has written to a pull request.
type bodyMarks struct {
	// content is the digest of what it changes, title that of the title, "" where it is not known.
	content, title string
	// labels are those that were put on it.
	labels []string
	// withdrawn reports whether Prerig has closed it.
	withdrawn bool
}

// bodyText is the body of a pull request taken apart.
type bodyText struct {
	// ours is Prerig's text without the marks, below what people have written.
	ours, below string
	marks       bodyMarks
}

// normalBody normalizes a body as returned by hosts: some convert line breaks to those of the web.
func normalBody(body string) string {
	lines := strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// readBody parses a body. A body without the divider is entirely a person's.
func readBody(body string) bodyText {
	lines := strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimRight(line, " \t") == divider })
	var t bodyText
	if at < 0 {
		// The marks may have been left, and record what Prerig has done; they are rewritten.
		t.below = strings.Trim(strings.Join(slices.DeleteFunc(lines, t.readMarks), "\n"), "\n")
		return t
	}
	t.below = strings.Trim(strings.Join(lines[at+1:], "\n"), "\n")
	ours := slices.DeleteFunc(lines[:at], t.readMarks)
	t.ours = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(strings.Join(ours, "\n")), "---"))
	return t
}

// readMarks reads the line of marks, and reports whether it is that.
func (t *bodyText) readMarks(line string) bool {
	text, isMarks := strings.CutPrefix(strings.TrimRight(line, " \t"), marksStart)
	if !isMarks {
		return false
	}
	t.marks = bodyMarks{}
	for word := range strings.FieldsSeq(strings.TrimSuffix(text, marksEnd)) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "content":
			t.marks.content = value
		case "title":
			t.marks.title = value
		case "withdrawn":
			t.marks.withdrawn = true
		case "labels":
			for label := range strings.SplitSeq(value, ",") {
				if plain, err := url.QueryUnescape(label); err == nil && plain != "" {
					t.marks.labels = append(t.marks.labels, plain)
				}
			}
		}
	}
	return true
}

func (m bodyMarks) marksLine() string {
	words := []string{"content=" + m.content, "title=" + m.title}
	if len(m.labels) > 0 {
		var escaped []string
		for _, label := range m.labels {
			escaped = append(escaped, url.QueryEscape(label))
		}
		words = append(words, "labels="+strings.Join(escaped, ","))
	}
	if m.withdrawn {
		words = append(words, "withdrawn=true")
	}
	return marksStart + strings.Join(words, " ") + marksEnd
}

// cutMark ends a text that is too long for the host.
const cutMark = "\n\n… the host takes no longer text."

// assembleBody assembles a body with ours above the divider. Text written by people is never cut; if it leaves no room,
// the body holds only that text and the marks.
func (t bodyText) assembleBody(ours string, longest int) string {
	rest := t.textBelowDivider()
	ours = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(ours), strings.TrimSpace(cutMark)))
	if room := longest - len(rest); longest > 0 && len(ours) > room {
		ours = strings.ToValidUTF8(ours[:max(0, min(len(ours), room-len(cutMark)))], "")
		if last := strings.LastIndexByte(ours, '\n'); last > 0 {
			ours = ours[:last] // no table or link is cut in its middle
		}
		ours += cutMark
	}
	return normalBody(ours + rest)
}

// textBelowDivider returns what follows Prerig's text.
func (t bodyText) textBelowDivider() string {
	rest := "\n\n" + t.marks.marksLine() + "\n\n---\n" + divider + "\n"
	if t.below != "" {
		rest += "\n" + t.below + "\n"
	}
	return rest
}

// ownTextLimit returns how long Prerig's text may be.
func (t bodyText) ownTextLimit(longest int) int { return max(1, longest-len(t.textBelowDivider())) }

func titleDigest(title string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(title)))
	return hex.EncodeToString(sum[:8])
}

// createOrUpdateRequest opens the pull request, or brings title, body and labels of the one that is open up to date.
func (r *round) createOrUpdateRequest(ctx context.Context, pushed bool) error {
	p := r.p
	known := r.request
	if known == nil || known.State != pullrequest.StateOpen {
		content, err := r.desiredRequestContent(ctx, nil)
		if err != nil {
			return err
		}
		created, err := p.Host.Create(ctx, p.Head, p.Base.Name, content)
		if err != nil {
			return fmt.Errorf("opening a pull request from %s to %s: %w", p.Head, p.Base.Name, err)
		}
		r.result.Changed, known = true, created
	}
	content, err := r.desiredRequestContent(ctx, known)
	if err != nil {
		return err
	}
	body := normalBody(known.Body)
	if content.Title != known.Title || content.Body != body || !containsAll(known.Labels, content.Labels) {
		content.From = known
		updated, err := p.Host.Update(ctx, known.Number, content)
		if err != nil {
			return fmt.Errorf("updating the pull request %d: %w", known.Number, err)
		}
		held := readBody(known.Body).marks.content
		known = updated
		if updated.State != pullrequest.StateOpen && pushed && held != r.contentDigest() {
			// It was closed or merged before it had this.
			r.result.Waiting.Request = updated
			return errAgain
		}
	}
	r.result.Waiting.Request = known
	return nil
}

func containsAll(all, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(one string) bool { return !slices.Contains(all, one) })
}

// desiredRequestContent returns the desired content of a pull request, based on its current content, nil for a new one.
// A title that differs from the last one written by Prerig is a person's, and so is the text below the divider; labels
// that people have removed stay removed. Prerig's text stays unchanged as long as the changes do.
func (r *round) desiredRequestContent(ctx context.Context, known *pullrequest.Request) (pullrequest.Content, error) {
	title := r.head.commit.Subject
	text := bodyText{}
	if known != nil {
		text = readBody(known.Body)
	}
	marks := bodyMarks{content: r.contentDigest(), title: titleDigest(title), labels: r.p.Labels}
	content := pullrequest.Content{Title: title, Labels: r.p.Labels}
	if known == nil && r.p.Host.LabelsLater() {
		marks.labels = nil // they are set before the text lists them: it is written afterwards
	}
	if known != nil {
		content.Labels = slices.DeleteFunc(slices.Clone(r.p.Labels), func(label string) bool { return slices.Contains(text.marks.labels, label) })
		marks.labels = slices.Concat(text.marks.labels, content.Labels)
		if now := titleDigest(known.Title); now != text.marks.title && now != marks.title {
			content.Title, marks.title = known.Title, text.marks.title
		}
	}
	same := text.ours != "" && text.marks.content == marks.content && !text.marks.withdrawn
	text.marks = marks
	if !same {
		var err error
		if text.ours, err = r.reviewText(ctx, text.ownTextLimit(r.p.Host.MaxBody())); err != nil {
			return content, err
		}
	}
	content.Body = text.assembleBody(text.ours, r.p.Host.MaxBody())
	return content, nil
}
