// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/pulltest"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
)

const whenCIIsGreen = "groupBy: Label, label: wave, merge: WhenGreen, mergeWhen: {statuses: [ci]}"

// isGreen has the newest commit of the first pull request's head be green.
func (p *promoting) isGreen() string {
	p.t.Helper()
	head := p.host.Requests()[0].Head
	p.host.Say(p.tip(head), "ci", pullrequest.CheckGreen)
	return head
}

// promote is a person's, with what is stored by now.
func (p *promoting) promote(pipeline string) {
	p.t.Helper()
	err := p.runner.Store.Sync(p.t.Context())
	if err == nil {
		_, err = p.promoter.Promote(p.t.Context(), []string{pipeline}, "ann", "token", everybody)
	}
	if err == nil {
		err = p.runner.Store.Sync(p.t.Context())
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestAPersonsCommitIsNotMerged has a person push to the head of a pull request, and its pipeline not look there before the promoter does.
func TestAPersonsCommitIsNotMerged(t *testing.T) {
	for name, pullRequest := range map[string]string{"when it is green": whenCIIsGreen, "when it was promoted": "groupBy: Label, label: wave"} {
		t.Run(name, func(t *testing.T) {
			p := newPromoting(t, pullRequest, map[string]string{"a": "x"})
			p.change("one", "a")
			head := p.host.Requests()[0].Head
			p.byHand(head, "Mine", head+"^{tree}", head)
			p.isGreen()
			if pullRequest != whenCIIsGreen {
				p.promote("a")
			}
			p.pass(time.Minute)
			if got := p.heads(); got != "x Open" || p.host.Calls(pulltest.Merge) != 0 {
				t.Errorf("got %s", got)
			}
			if _, messages := p.stages(); !strings.Contains(messages[0], "commits of a person") {
				t.Errorf("it says %q", messages)
			}
		})
	}
}

// TestOnlyPrerigsCommitIsMergedUnderTheLock has a person push right before a merge, when all has been decided.
func TestOnlyPrerigsCommitIsMergedUnderTheLock(t *testing.T) {
	p := newPromoting(t, whenCIIsGreen, map[string]string{"a": "x"})
	p.change("one", "a")
	e, _ := p.runner.Catalog.Get("a")
	own := p.host.Requests()[0]
	merge := func(r pullrequest.Request) error {
		goOn := func(context.Context) error { return nil }
		_, err := p.runner.Targets.MergeUnderLock(t.Context(), "", e.Pipeline.Spec.Publish[0], &r, pullrequest.MergeSquash, goOn)
		return err
	}
	p.byHand(own.Head, "Mine", own.Head+"^{tree}", own.Head)
	if err := merge(p.host.Requests()[0]); !errors.Is(err, publish.ErrEdited) || !strings.Contains(err.Error(), "Mine") || p.host.Calls(pulltest.Merge) != 0 {
		t.Errorf("got %v", err)
	}
	unknown := own
	unknown.HeadCommit = ""
	if err := merge(unknown); err == nil || p.host.Calls(pulltest.Merge) != 0 {
		t.Error("a commit that the host does not tell is merged")
	}
	p.repository.Git("update-ref", "refs/heads/"+own.Head, own.HeadCommit)
	if err := merge(own); err != nil || p.heads() != "x Merged" {
		t.Errorf("got %v, %s", err, p.heads())
	}
}

// TestANewerHeadOfPrerigsIsMerged has pipelines of one group know different heads.
func TestANewerHeadOfPrerigsIsMerged(t *testing.T) {
	t.Run("another one has published", func(t *testing.T) {
		p := newPromoting(t, whenCIIsGreen, map[string]string{"a": "x", "b": "x"})
		p.change("one", "a", "b")
		p.change("two", "b")
		p.isGreen()
		if p.pass(time.Minute); p.heads() != "x Merged" {
			t.Errorf("got %s", p.heads())
		}
	})
	for _, pipeline := range []string{"a", "b"} {
		t.Run("promoted by "+pipeline, func(t *testing.T) {
			p := newPromoting(t, "groupBy: Label, label: wave", map[string]string{"a": "x", "b": "x"})
			p.change("one", "a", "b")
			p.change("two", "b")
			if old, now := p.waits("a").HeadCommit, p.waits("b").HeadCommit; old == now {
				t.Fatalf("both know %s", now)
			}
			p.promote(pipeline)
			if p.pass(time.Minute); p.heads() != "x Merged" {
				states, messages := p.stages()
				t.Errorf("got %s, %v %q", p.heads(), states, messages)
			}
		})
	}
	t.Run("promoted before", func(t *testing.T) {
		p := newPromoting(t, "groupBy: Label, label: wave", map[string]string{"a": "x", "b": "x"})
		p.change("one", "a", "b")
		p.promote("a")
		p.change("two", "b")
		if p.pass(time.Minute); p.heads() != "x Open" {
			t.Errorf("got %s", p.heads())
		}
	})
	t.Run("another one has left", func(t *testing.T) {
		p := newPromoting(t, whenCIIsGreen, map[string]string{"a": "x", "b": "x"})
		p.change("one", "a", "b")
		p.edit("b", "wave: x", "wave: z")
		p.change("two", "b")
		head := p.isGreen()
		if p.waits("a").HeadCommit == p.tip(head) {
			t.Fatal("it knows the head")
		}
		if p.pass(time.Minute); p.heads() != "x Merged, z Open" {
			t.Errorf("got %s", p.heads())
		}
	})
}
