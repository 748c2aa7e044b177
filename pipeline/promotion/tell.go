// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"errors"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// editedText is about a pull request that holds what a person has done.
const editedText = "has commits of a person on its branch, who is to merge it"

// setStateAndMessage sets the state, and the message that is shown with it.
func (v *Verdict) setStateAndMessage(state string, text status.Text) {
	v.State, v.Message, v.Told, v.Until = state, text.String(), text, time.Time{}
}

// textAboutPipeline returns a text about a pipeline, which is not named to readers who may not know of it.
func textAboutPipeline(pipeline, text string) status.Text {
	return status.Text{{Text: pipeline + text, Pipeline: pipeline, Else: "a pipeline of others" + text}}
}

// quoteStageMessage repeats the message of a stage, for readers who have a pipeline in it.
func (s *Stage) quoteStageMessage(begin string, text status.Text) status.Text {
	return append(status.Plain(begin), text.After(": ").Of(s.Head)...)
}

// resultTextForMember returns the result of an operation with the secret of a pipeline of a group. It may name that
// secret, so other readers get a different text.
func (g *group) resultTextForMember(err error, text, otherwise string) status.Text {
	whose := g.members[0].key
	if e := (*askError)(nil); errors.As(err, &e) {
		whose = e.pipeline
	}
	return status.Text{{Text: text, Pipeline: whose, Else: otherwise}}
}

// reader is a person who asks for the progress of a unit, and may know of some of its pipelines.
type reader struct {
	unit *unit
	may  func(pipeline string) bool
	// own is the first pipeline of the unit that may be disclosed, and all reports whether every pipeline may be.
	own *member
	all bool
}

// withheld replaces a text that may name pipelines of others without marking where.
const withheld = "the reason is visible to users who may read all of its pipelines"

// disclosableText returns what may be disclosed of a text that is stored whole, and in pieces. Older versions store no
// pieces: their texts are soon decided again, and meanwhile are shown only to readers who may know of everything.
func (r reader) disclosableText(whole string, told status.Text) string {
	switch {
	case r.all:
		return whole
	case whole == told.String():
		return told.For(r.mayKnowPart)
	}
	return withheld
}

func (r reader) mayKnowPart(p status.Part) bool {
	return (p.Pipeline == "" || r.may(p.Pipeline)) && (p.Head == "" || r.unit.hasWith(p.Head, r.may))
}

// hasWith reports whether one of the pipelines that may be disclosed shares a head, or asks to be merged after it.
func (u *unit) hasWith(head string, may func(pipeline string) bool) bool {
	for _, g := range u.groups {
		for i := range g.members {
			if m := &g.members[i]; may(m.key) && (g.head == head || m.isAfter(head)) {
				return true
			}
		}
	}
	return false
}

func (m *member) isAfter(head string) bool {
	r := m.to.PullRequest
	return r.MergeWhen != nil && slices.ContainsFunc(r.MergeWhen.After, func(one v1alpha1.After) bool { return r.HeadOf(m.to, one.Group) == head })
}

// firstOf returns the first pipeline of a unit that may be disclosed, or nil if none may be.
func (u *unit) firstOf(may func(pipeline string) bool) *member {
	for _, g := range u.groups {
		for i := range g.members {
			if may(g.members[i].key) {
				return &g.members[i]
			}
		}
	}
	return nil
}

func isAllKnown(units []*unit, may func(pipeline string) bool) bool {
	for _, u := range units {
		for _, g := range u.groups {
			if slices.ContainsFunc(g.members, func(m member) bool { return !may(m.key) }) {
				return false
			}
		}
	}
	return true
}
