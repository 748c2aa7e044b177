// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// KeptComment is a comment that is kept in place.
type KeptComment struct {
	// Name distinguishes the comments on one pull request.
	Name string
	// Text is Markdown of at most MaxBody characters. Finish prepends it to the comment.
	Text string
	// Known is what was written last, as far as that is known.
	Known Written
	// NoNew prevents creating a comment if none exists.
	NoNew bool
}

// Written is a comment as it was written.
type Written struct {
	// ID is the host's, Author the name of the author as reported by the host.
	ID     string `json:"id,omitempty"`
	Author string `json:"author,omitempty"`
	// Digest is that of the text as the host gave it back.
	Digest string `json:"digest,omitempty"`
}

// The mark of a comment is an unused link definition, which no host shows. It cannot be forged without the
// credential: a comment with a self-made mark, or with Prerig's text changed below its mark, belongs to its author.
const (
	keptStart, keptEnd = "[prerig-preview]: # (", ")"
	// markRoom is more than the length of a mark, with the line before it.
	markRoom = 128
)

// commentMark returns the mark for a text.
func commentMark(key []byte, number int64, name, text string) string {
	named := sha256.Sum256([]byte(name))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "preview %d %x %s", number, named, normalLines(text))
	return keptStart + hex.EncodeToString(named[:8]) + " " + hex.EncodeToString(mac.Sum(nil)[:16]) + keptEnd
}

// normalLines normalizes a text as returned by hosts: some convert line endings to those of the web, or strip
// blanks.
func normalLines(text string) string {
	lines := strings.Split(normalText(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(normalLines(text)))
	return hex.EncodeToString(sum[:16])
}

// withoutMark returns the text before the mark of a comment, and the mark, or "" if it does not end with one.
func withoutMark(text string) (before, mark string) {
	text = normalLines(text)
	at := strings.LastIndexByte(text, '\n') + 1
	if !strings.HasPrefix(text[at:], keptStart) {
		return text, ""
	}
	return strings.TrimSpace(text[:at]), text[at:]
}

// isOwnComment reports whether the text of a comment is what was written with these credentials under a name.
func (c *conversation) isOwnComment(number int64, name, text string) bool {
	before, mark := withoutMark(text)
	return mark != "" && hmac.Equal([]byte(mark), []byte(commentMark(c.keyOfMarks(), number, name, before)))
}

// findOwnComment returns the comment that was written before, or nil if none exists.
func (c *conversation) findOwnComment(ctx context.Context, number int64, k KeptComment) (*comment, error) {
	if k.Known.ID != "" {
		found, err := c.readComment(ctx, number, k.Known.ID)
		switch {
		case err != nil && !IsNotFound(err):
			return nil, err
		case err == nil && (digestOf(found.text) == k.Known.Digest || c.isOwnComment(number, k.Name, found.text)):
			return found, nil
		}
	}
	all, err := c.listPostedComments(ctx, number)
	if err != nil {
		return nil, err
	}
	for i := range all {
		// A copy made by others is newer than its original.
		if one := &all[i]; c.isOwnComment(number, k.Name, one.text) && (k.Known.Author == "" || one.author == k.Known.Author) {
			return one, nil
		}
	}
	return nil, nil
}

// Keep implements Conversation.
func (c *conversation) Keep(ctx context.Context, number int64, k KeptComment) (Written, error) {
	text := c.host.safeText(normalLines(k.Text))
	if n := longestCountedLength(text); n > c.MaxBody() {
		return k.Known, fmt.Errorf("the comment has %d characters, and the host takes %d", n, c.MaxBody())
	}
	there, err := c.findOwnComment(ctx, number, k)
	if err != nil || there == nil && k.NoNew {
		return k.Known, err
	}
	return c.writeMarkedComment(ctx, number, k, there, text)
}

// writeMarkedComment sets the text of a comment with its mark, creating the comment if none exists.
func (c *conversation) writeMarkedComment(ctx context.Context, number int64, k KeptComment, there *comment, text string) (Written, error) {
	text += "\n\n" + commentMark(c.keyOfMarks(), number, k.Name, text)
	if there != nil && normalLines(there.text) == text {
		return Written{ID: there.id, Author: there.author, Digest: digestOf(there.text)}, nil
	}
	now, err := c.writeComment(ctx, number, there, text)
	if e := (*Error)(nil); there != nil && errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusForbidden && !e.Temporary) {
		// It was removed meanwhile, or belongs to others.
		now, err = c.writeComment(ctx, number, nil, text)
	}
	if err != nil {
		return k.Known, err
	}
	if now.id == "" {
		return k.Known, errors.New("the host's answer is no comment; is the URL that of the host's API?")
	}
	return Written{ID: now.id, Author: now.author, Digest: digestOf(now.text)}, nil
}

// Finish implements Conversation.
func (c *conversation) Finish(ctx context.Context, number int64, k KeptComment) error {
	there, err := c.findOwnComment(ctx, number, k)
	if there == nil || err != nil {
		return err
	}
	before, _ := withoutMark(there.text)
	word := c.host.safeText(normalLines(k.Text))
	if strings.HasPrefix(before, word) {
		return nil
	}
	text := word + "\n\n" + before
	if longestCountedLength(text) > c.MaxBody() {
		text = word
	}
	_, err = c.writeMarkedComment(ctx, number, k, there, text)
	return err
}

// keyOfMarks implements talker for all kinds.
func (a *api) keyOfMarks() []byte { return a.marks[:] }
