// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import "strings"

// Text is a text about pipelines of several teams, in pieces: each reader is told of it what that one may know.
type Text []Part

// Part is a piece of a text.
type Part struct {
	Text string `json:"text"`
	// Pipeline is the one that the piece is about: who may not know of it is told Else.
	Pipeline string `json:"pipeline,omitempty"`
	// Head is that of the group that the piece is about: who has no pipeline that shares or waits for it is told Else.
	Head string `json:"head,omitempty"`
	Else string `json:"else,omitempty"`
}

// Plain is a text that may be told to everybody.
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

// After puts something before a text, whatever a reader is told of it.
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

// Of makes a text one that is said of the group with a head, so that others are not told it.
func (t Text) Of(head string) Text {
	out := append(Text{}, t...)
	for i := range out {
		if p := &out[i]; p.Pipeline == "" && p.Head == "" {
			p.Head = head
		}
	}
	return out
}
