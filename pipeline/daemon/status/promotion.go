// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// Names of what is stored of merges and rollbacks.
const (
	groupPrefix    = "group/"
	trainPrefix    = "train/"
	rollbackPrefix = "rollback/"
)

// OnHold records that a person has stopped a pipeline from publishing, and Prerig from merging its waiting results.
type OnHold struct {
	// Since is when, By who, Reason why in a few words.
	Since  time.Time `json:"since"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Rollback is the ID of the rollback that it was put on hold for, "" where it was for none.
	Rollback string `json:"rollback,omitempty"`
}

// Message describes the hold in a sentence, and how to end it.
func (h *OnHold) Message() string {
	text := "on hold"
	if h.By != "" {
		text += " by " + h.By
	}
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return text + "; prerig daemon promote or prerig daemon resume publishes the newest result again"
}

// Decision is a person's decision about exactly one content of a group.
type Decision struct {
	// Commit is the head that it is about. It does not apply to any other.
	Commit string `json:"commit"`
	// Heads are where other pipelines of the group knew the head to be then: one that was not asked for a while knows an older one.
	Heads []string `json:"heads,omitempty"`
	// Number is that of the pull request if a person has closed it: its branch may have been deleted, and its
	// commit be unknown.
	Number int64 `json:"number,omitempty"`
	// Closed is when the host reports it was closed, zero if unknown: the decision does not apply to a later close.
	Closed time.Time `json:"closed,omitzero"`
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
}

// IsOf reports whether the decision is about a head.
func (d *Decision) IsOf(commit string) bool {
	return commit != "" && (d.Commit == commit || slices.Contains(d.Heads, commit))
}

// Landed is a merge.
type Landed struct {
	Number int64  `json:"number"`
	Head   string `json:"head,omitempty"`
	// Commit is what it made on the branch.
	Commit string    `json:"commit,omitempty"`
	URL    string    `json:"url,omitempty"`
	At     time.Time `json:"at"`
	// Seen is when this daemon found it, by its own clock.
	Seen time.Time `json:"seen,omitzero"`
	// By is who had Prerig merge it, and "" where it was done at the host.
	By string `json:"by,omitempty"`
	// GreenSince is since when all of its statuses are green, zero where they are not.
	GreenSince time.Time `json:"greenSince,omitzero"`
	// Red is the last status that was found red, "" where none is.
	Red string `json:"red,omitempty"`
	// Train is when the train of waves began that it was merged in, zero for none.
	Train time.Time `json:"train,omitzero"`
	// Settled reports whether its statuses were green for long enough: later ones no longer count.
	Settled bool `json:"settled,omitempty"`
}

// Group is the stored state of a group of results that share a pull request. Actions of people are read from the host
// instead.
type Group struct {
	// Head is its branch.
	Head string `json:"head"`
	// Merging is written before Prerig merges, so that a merge that is found is known for its own.
	Merging *Decision `json:"merging,omitempty"`
	// Promoted is a person's decision to merge, or open, in spite of what the policies wait for.
	Promoted *Decision `json:"promoted,omitempty"`
	// Green is since when all statuses of a head are green.
	Green *Decision `json:"green,omitempty"`
	// Landed is the last merge.
	Landed *Landed `json:"landed,omitempty"`
	// State and Message are what was last shown, since Since.
	State   string    `json:"state,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Until is when what it waits for is over, zero where only others know.
	Until time.Time `json:"until,omitzero"`
	// Told is Message in pieces, because it may name pipelines of others. Older versions stored none.
	Told Text `json:"told,omitempty"`
}

// Say sets the message.
func (g *Group) Say(text Text) { g.Message, g.Told = text.String(), text }

// Train is what is remembered of waves that go one after another.
type Train struct {
	// Revision of the source that it carries, and since when.
	Revision string    `json:"revision,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	// Closed reports whether one of its waves is merged, so that another revision has to wait for the next train.
	Closed bool `json:"closed,omitempty"`
	// Stopped is the reason it does not continue, "" if it does. Once stopped, another revision may begin the next
	// one.
	Stopped string `json:"stopped,omitempty"`
	// Told is Stopped in pieces, because it may name pipelines of others. Older versions stored none.
	Told Text `json:"told,omitempty"`
	// Open are the heads of the waves that are to have a pull request.
	Open []string `json:"open,omitempty"`
	// Looked are its newest revisions that all pipelines of its waves were asked to look at.
	Looked []string `json:"looked,omitempty"`
	// Held reports whether results wait for the next train.
	Held bool `json:"held,omitempty"`
}

// Rollback is a requested rollback.
type Rollback struct {
	ID string `json:"id"`
	// Pipeline and Target are where it was asked for, Pipelines all that the publish had changed.
	Pipeline  string   `json:"pipeline"`
	Target    string   `json:"target"`
	Pipelines []string `json:"pipelines,omitempty"`
	// Commit is the publish that is taken back, Files how many files that are.
	Commit string    `json:"commit"`
	Files  int       `json:"files,omitempty"`
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	// State is Asked, Open where its pull request waits, Done, Closed where a person has closed that, or Refused.
	State string `json:"state"`
	// Result is the reverting commit, Number and URL are those of the pull request.
	Result  string `json:"result,omitempty"`
	Number  int64  `json:"number,omitempty"`
	URL     string `json:"url,omitempty"`
	Message string `json:"message,omitempty"`
}

// States of a Rollback.
const (
	RollbackAsked   = "Asked"
	RollbackOpen    = "Open"
	RollbackDone    = "Done"
	RollbackClosed  = "Closed"
	RollbackRefused = "Refused"
)

// Ended reports whether the rollback has no work left.
func (r *Rollback) Ended() bool { return r.State != RollbackAsked && r.State != RollbackOpen }

// promotionName is short and has no character that a name must not have.
func promotionName(prefix, key string) string {
	sum := sha256.Sum256([]byte(key))
	return prefix + hex.EncodeToString(sum[:16])
}

// Group returns what this process knows of a group.
func (s *Promotions) Group(key string) Group {
	return knownValue[Group](s.records, promotionName(groupPrefix, key))
}

// ChangeGroup changes the stored state of a group, and retries after concurrent changes. A change that returns
// false leaves it unchanged.
func (s *Promotions) ChangeGroup(ctx context.Context, key string, change func(g *Group) bool) error {
	return changeValue(ctx, s.records, promotionName(groupPrefix, key), change)
}

// Train returns what this process knows of waves.
func (s *Promotions) Train(key string) Train {
	return knownValue[Train](s.records, promotionName(trainPrefix, key))
}

// ChangeTrain changes what is stored of waves.
func (s *Promotions) ChangeTrain(ctx context.Context, key string, change func(t *Train) bool) error {
	return changeValue(ctx, s.records, promotionName(trainPrefix, key), change)
}

// ChangeRollback changes what is stored of a rollback.
func (s *Promotions) ChangeRollback(ctx context.Context, id string, change func(r *Rollback) bool) error {
	return changeValue(ctx, s.records, rollbackPrefix+id, change)
}

// LoadRollback returns a rollback as stored now, or the zero value if none is stored.
func (s *Promotions) LoadRollback(ctx context.Context, id string) (Rollback, error) {
	return loadValue[Rollback](ctx, s.records, rollbackPrefix+id)
}

// Rollbacks returns all rollbacks that are known, newest first.
func (s *Promotions) Rollbacks() []Rollback {
	var out []Rollback
	for _, name := range s.table.Names(rollbackPrefix) {
		if r := knownValue[Rollback](s.records, name); r.ID != "" {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Rollback) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// ForgetRollback deletes a rollback that is no longer needed.
func (s *Promotions) ForgetRollback(ctx context.Context, id string) error {
	return s.q.Forget(ctx, rollbackPrefix+id)
}

func knownValue[T any](r *records, name string) (v T) {
	data, _, ok := r.table.Get(name)
	if !ok {
		return v
	}
	if known, err := decodeJSON[T](data); err == nil {
		v = *known
	}
	return v
}

func loadValue[T any](ctx context.Context, r *records, name string) (v T, err error) {
	data, _, ok, err := r.q.Load(ctx, name)
	if err != nil || !ok {
		return v, err
	}
	if known, err := decodeJSON[T](data); err == nil {
		v = *known
	}
	return v, nil
}

func changeValue[T any](ctx context.Context, r *records, name string, change func(v *T) bool) error {
	const attempts = 10
	for try := 1; ; try++ {
		data, revision, ok, err := r.q.Load(ctx, name)
		if err != nil {
			return err
		}
		v := new(T)
		if ok {
			if v, err = decodeJSON[T](data); err != nil {
				v = new(T)
			}
		}
		if !change(v) {
			return nil
		}
		if data, err = encodeJSON(v); err != nil {
			return fmt.Errorf("saving %s: %w", name, err)
		}
		_, err = r.q.SaveAfter(ctx, name, data, revision)
		if !errors.Is(err, queue.ErrChanged) || try == attempts {
			return err
		}
	}
}
