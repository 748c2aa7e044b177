// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import "strings"

// Text is a text about pipelines of several teams, in pieces: each reader sees only the pieces they may know.
type Text []Part

// Part is a piece of a text.
type Part struct {
	Text string `json:"text"`
	// Pipeline is the one that the piece is about: readers who may not know of it see Else.
	Pipeline string `json:"pipeline,omitempty"`
	// Head is that of the group that the piece is about: readers without a pipeline that shares or waits for it see
	// Else.
	Head string `json:"head,omitempty"`
	Else string `json:"else,omitempty"`
}

// Plain returns a text that every reader may see.
func Plain(text string) Text {
	if text == "" {
		return nil
	}
	return Text{{Text: text}}
}

// String is the whole text.
func (t Text) String() string { return t.For(func(Part) bool { return true }) }

// For is the text for a reader who may know of some of its pieces.
func (t Text) For(may func(Part) bool) string {
	var out strings.Builder
	for _, p := range t {
		if may(p) {
			out.WriteString(p.Text)
		} else {
			out.WriteString(p.Else)
		}
	}
	return out.String()
}

// After prefixes a text, regardless of the pieces that a reader sees.
func (t Text) After(before string) Text {
	if len(t) == 0 {
		return Plain(before)
	}
	out := append(Text{}, t...)
	if first := &out[0]; first.Pipeline == "" && first.Head == "" {
		first.Text = before + first.Text
	} else {
		first.Text, first.Else = before+first.Text, before+first.Else
	}
	return out
}

// Of restricts a text to the group with a head, so that others do not see it.
func (t Text) Of(head string) Text {
	out := append(Text{}, t...)
	for i := range out {
		if p := &out[i]; p.Pipeline == "" && p.Head == "" {
			p.Head = head
		}
	}
	return out
}
