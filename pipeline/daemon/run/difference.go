// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/review/diff"
	"github.com/prerig/prerig/pipeline/review/redact"
)

// Bounds of what is kept of a difference: files, bytes of all and of one, and the size of a file that is looked at.
const (
	maxDiffFiles = 200
	maxDiffBytes = 512 << 10
	maxDiffPatch = 128 << 10
	maxDiffInput = 2 << 20
)

// diffTimeout bounds the making of a difference, diffWait the wait for its turn: the run is stored only after.
const (
	diffTimeout = time.Minute
	diffWait    = 2 * time.Minute
)

var errNoTurn = errors.New("too many others were being made")

// saveDiffInTime calls saveDiff when it is its turn, and abandons it after a time limit. A commit of a thousand
// pipelines ends as many runs at the same moment: at most one per processor works on it, because otherwise requests
// to the queue would time out.
func (a *attempt) saveDiffInTime(ctx context.Context, entry status.Run) bool {
	if !a.hasChanged() {
		return false
	}
	waiting, cancel := context.WithTimeoutCause(ctx, diffWait, errNoTurn)
	defer cancel()
	select {
	case a.r.differences <- struct{}{}:
	case <-waiting.Done():
		a.log.Warn("the difference was not stored", "run", entry.ID, "error", context.Cause(waiting))
		return false
	}
	// Who is left behind has its turn until it has ended: it works still.
	var taken atomic.Bool
	saved, err := watchdog.Run(ctx, a.r.Watchdog, a.newWatchdogStep(watchdog.StepDifference, diffTimeout), func(ctx context.Context) (bool, error) {
		if !taken.CompareAndSwap(false, true) {
			return false, nil
		}
		defer func() { <-a.r.differences }()
		return a.saveDiff(ctx, entry), nil
	})
	if taken.CompareAndSwap(false, true) {
		<-a.r.differences // it was not begun
	}
	if err != nil {
		a.log.Warn("the difference was not stored", "run", entry.ID, "error", err)
	}
	return saved
}

// saveDiff stores what the run changed, for people to look at. It is of no consequence where it fails.
func (a *attempt) saveDiff(ctx context.Context, entry status.Run) (saved bool) {
	defer func() {
		if r := recover(); r != nil {
			a.log.Error("the difference was not stored", "run", entry.ID, "error", fault.Recovered(r))
			saved = false
		}
	}()
	d := &status.Diff{}
	size := 0
	for _, p := range a.published {
		if p.err == nil && p.receipt.Changed {
			size = a.addDiffs(ctx, p, d, size)
		}
	}
	if len(d.Files)+d.LeftOut == 0 {
		return false
	}
	if err := a.r.Store.SaveDiff(ctx, a.entry.Key, entry.ID, d); err != nil {
		a.log.Warn("the difference was not stored", "run", entry.ID, "error", err)
		return false
	}
	return true
}

// addDiffs adds the difference of one place to those of the others, and returns their total size.
func (a *attempt) addDiffs(ctx context.Context, p targetResult, d *status.Diff, size int) int {
	for _, list := range []struct {
		kind  string
		names []string
	}{{"added", p.receipt.Outcome.Added}, {"modified", p.receipt.Outcome.Modified}, {"deleted", p.receipt.Outcome.Deleted}} {
		for _, name := range list.names {
			if len(d.Files) >= maxDiffFiles || size > maxDiffBytes {
				d.LeftOut++
				continue
			}
			var before []byte
			if list.kind != "added" {
				before = p.receipt.Old(name)
			}
			after := p.receipt.Files[name]
			if len(before)+len(after) > maxDiffInput {
				d.LeftOut++
				continue
			}
			one := a.r.fileDiff(ctx, name, before, after)
			one.Target, one.Kind = p.published.Target, list.kind
			size += len(one.Patch)
			d.Files = append(d.Files, one)
		}
	}
	return size
}

// fileDiff is the difference of one file, no longer than it may be.
func (r *Runner) fileDiff(ctx context.Context, name string, before, after []byte) status.FileDiff {
	one := status.FileDiff{Path: name, Injected: r.injected.linesOfFile(ctx, after), InjectedBefore: r.injected.linesOfFile(ctx, before)}
	before, after = redact.Pair(before, after) // who may look at the page need not be who may read Secrets
	patch := diff.Unified(name, []diff.Chunk{{Old: before, New: after}})
	if len(patch) > maxDiffPatch {
		end := bytes.LastIndexByte(patch[:maxDiffPatch], '\n') + 1
		one.LinesLeftOut = bytes.Count(patch[end:], []byte("\n"))
		patch = patch[:end]
	}
	one.Patch = string(patch)
	return one
}
