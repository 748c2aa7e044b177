// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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

// differences stores what runs have changed, for people to look at.
type differences struct {
	turns    chan struct{} // one for each that is made
	store    *status.Store
	watchdog *watchdog.Watchdog
	injected injectedLines
}

// diffSubject is the run that a difference is of.
type diffSubject struct {
	pipeline, run string
	log           *slog.Logger
}

// saveInTime calls save when it is the run's turn, and abandons it after a time limit. A commit of a thousand
// pipelines ends as many runs at the same moment: at most one per processor works on it, because otherwise requests
// to the queue would time out.
func (d *differences) saveInTime(ctx context.Context, of diffSubject, results targetResults) bool {
	if !results.hasChanged() {
		return false
	}
	waiting, cancel := context.WithTimeoutCause(ctx, diffWait, errNoTurn)
	defer cancel()
	select {
	case d.turns <- struct{}{}:
	case <-waiting.Done():
		of.log.Warn("the difference was not stored", "run", of.run, "error", context.Cause(waiting))
		return false
	}
	// Who is left behind has its turn until it has ended: it works still.
	var taken atomic.Bool
	step := watchdog.Step{Name: watchdog.StepDifference, Subject: of.pipeline, Limit: diffTimeout}
	saved, err := watchdog.Run(ctx, d.watchdog, step, func(ctx context.Context) (bool, error) {
		if !taken.CompareAndSwap(false, true) {
			return false, nil
		}
		defer func() { <-d.turns }()
		return d.save(ctx, of, results), nil
	})
	if taken.CompareAndSwap(false, true) {
		<-d.turns // it was not begun
	}
	if err != nil {
		of.log.Warn("the difference was not stored", "run", of.run, "error", err)
	}
	return saved
}

// save stores what the run changed. A failure has no consequence.
func (d *differences) save(ctx context.Context, of diffSubject, results targetResults) (saved bool) {
	defer func() {
		if r := recover(); r != nil {
			of.log.Error("the difference was not stored", "run", of.run, "error", fault.Recovered(r))
			saved = false
		}
	}()
	all := &status.Diff{}
	size := 0
	for _, p := range results {
		if p.err == nil && p.receipt.Changed {
			size = d.addFiles(ctx, p, all, size)
		}
	}
	if len(all.Files)+all.LeftOut == 0 {
		return false
	}
	if err := d.store.SaveDiff(ctx, of.pipeline, of.run, all); err != nil {
		of.log.Warn("the difference was not stored", "run", of.run, "error", err)
		return false
	}
	return true
}

// addFiles adds the difference of one place to those of the others, and returns their total size.
func (d *differences) addFiles(ctx context.Context, p targetResult, all *status.Diff, size int) int {
	for _, list := range []struct {
		kind  string
		names []string
	}{{"added", p.receipt.Outcome.Added}, {"modified", p.receipt.Outcome.Modified}, {"deleted", p.receipt.Outcome.Deleted}} {
		for _, name := range list.names {
			if len(all.Files) >= maxDiffFiles || size > maxDiffBytes {
				all.LeftOut++
				continue
			}
			var before []byte
			if list.kind != "added" {
				before = p.receipt.Old(name)
			}
			after := p.receipt.Files[name]
			if len(before)+len(after) > maxDiffInput {
				all.LeftOut++
				continue
			}
			one := d.fileDiff(ctx, name, before, after)
			one.Target, one.Kind = p.published.Target, list.kind
			size += len(one.Patch)
			all.Files = append(all.Files, one)
		}
	}
	return size
}

// fileDiff is the difference of one file, no longer than it may be.
func (d *differences) fileDiff(ctx context.Context, name string, before, after []byte) status.FileDiff {
	one := status.FileDiff{Path: name, Injected: d.injected.linesOfFile(ctx, after), InjectedBefore: d.injected.linesOfFile(ctx, before)}
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
