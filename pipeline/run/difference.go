// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/diff"
	"github.com/prerig/prerig/pipeline/fault"
	"github.com/prerig/prerig/pipeline/redact"
	"github.com/prerig/prerig/pipeline/status"
	"github.com/prerig/prerig/pipeline/watchdog"
)

// Bounds of what is kept of a difference: files, bytes of all and of one, and the size of a file that is looked at.
const (
	maxDiffFiles = 200
	maxDiffBytes = 512 << 10
	maxDiffPatch = 128 << 10
	maxDiffInput = 2 << 20
)

// diffTimeout bounds the making of a difference.
const diffTimeout = time.Minute

// saveDiffInTime is saveDiff, given up where it takes too long.
func (a *attempt) saveDiffInTime(ctx context.Context, entry status.Run) bool {
	saved, err := watchdog.Run(ctx, a.r.Watchdog, a.step(watchdog.StepDifference, diffTimeout), func(ctx context.Context) (bool, error) {
		return a.saveDiff(ctx, entry), nil
	})
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

// addDiffs adds the difference of one place to that of the others, and gives the size of all.
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
			one := fileDiff(ctx, name, before, after)
			one.Target, one.Kind = p.published.Target, list.kind
			size += len(one.Patch)
			d.Files = append(d.Files, one)
		}
	}
	return size
}

// fileDiff is the difference of one file, no longer than it may be.
func fileDiff(ctx context.Context, name string, before, after []byte) status.FileDiff {
	one := status.FileDiff{Path: name, Injected: InjectedLines(ctx, after), InjectedBefore: InjectedLines(ctx, before)}
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

// InjectedLines returns the lines of a file of manifests, counted from 1, that an injection made: those that are not there
// when the injection is taken out again.
func InjectedLines(ctx context.Context, content []byte) []int {
	if len(content) == 0 {
		return nil
	}
	file, err := manifest.Parse("", content)
	if err != nil {
		return nil
	}
	p, err := policyv1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: remove}\nspec: {mode: Remove, istio: {injector: {builtIn: istio}}}\n"))
	if err != nil {
		p, err = policyv1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: remove}\nspec: {mode: Remove}\n"))
		if err != nil {
			return nil
		}
	}
	injector, err := fn.New([]*policyv1alpha1.InjectionPolicy{p}, fn.WithWorkers(1))
	if err != nil {
		return nil
	}
	items := make([]fn.Item, len(file.Docs))
	for i, doc := range file.Docs {
		items[i] = fn.Item{Doc: doc, Index: i}
	}
	report, err := injector.Run(ctx, items)
	if err != nil || len(report.Items) != len(items) {
		return nil
	}
	var without bytes.Buffer
	same := true
	for i, item := range report.Items {
		same = same && item.Doc == items[i].Doc
		without.Write(item.Doc.Raw())
	}
	if same {
		return nil
	}
	return addedLines(diff.Unified("f", []diff.Chunk{{Old: without.Bytes(), New: content}}))
}

// addedLines returns the lines of the new file that a unified diff adds.
func addedLines(patch []byte) []int {
	var out []int
	at := 0
	for line := range strings.Lines(string(patch)) {
		switch {
		case strings.HasPrefix(line, "--- ") && at == 0, strings.HasPrefix(line, "+++ ") && at == 0:
		case strings.HasPrefix(line, "@@ "):
			_, after, _ := strings.Cut(line, " +")
			start, _, _ := strings.Cut(strings.Fields(after)[0], ",")
			at, _ = strconv.Atoi(start)
		case strings.HasPrefix(line, "+"):
			out = append(out, at)
			at++
		case strings.HasPrefix(line, " "):
			at++
		}
	}
	return slices.Compact(out)
}
