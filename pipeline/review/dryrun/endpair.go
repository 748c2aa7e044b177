// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/diff/group"
	"github.com/prerig/prerig/pipeline/review/pairing"
)

// endPair is a pipeline at both ends; one of the two is nil where it does not exist.
type endPair struct {
	before, after *Result
	sides         [2]side // what both have
	err           error   // why it cannot be rendered any more
	failed        string  // why parts of it cannot
	// mended are the units that could not be rendered at the first end: what they had is unknown.
	mended []string
	// remarks are about what is left to the cluster at one end.
	remarks []Remark
	// build has the files to compare; nil with err.
	build *pairing.Build
}

// endPairs returns the pipelines to compare, in the order of the second end, and those that fail at the first one.
func endPairs(before, after []Result) (all []*endPair, still []Still) {
	earlier := map[string]*Result{}
	for i := range before {
		earlier[before[i].Entry.Key] = &before[i]
	}
	seen := map[string]bool{}
	for i := range after {
		r, old := &after[i], earlier[after[i].Entry.Key]
		seen[r.Entry.Key] = true
		switch {
		case old != nil && old.Err != nil && r.Err != nil && isSameCause(old.Err, r.Err):
			still = append(still, Still{Build: r.Entry.Key, Err: r.Err})
		case old != nil && old.Err != nil && r.Err == nil:
			still = append(still, Still{Build: r.Entry.Key, Err: old.Err, Mended: true})
		default:
			all = append(all, &endPair{before: old, after: r, err: r.Err})
		}
	}
	for i := range before {
		if r := &before[i]; !seen[r.Entry.Key] && r.Err == nil {
			all = append(all, &endPair{before: r})
		}
	}
	return all, still
}

// result is the newer one.
func (e *endPair) result() *Result {
	if e.after != nil {
		return e.after
	}
	return e.before
}

func (e *endPair) key() string { return e.result().Entry.Key }

// shownParts is how many units and releases an error names.
const shownParts = 5

// keepFailed fills in the files to compare. What fails at the second end only keeps what it has at the first one.
func (e *endPair) keepFailed() {
	if e.err != nil {
		return
	}
	e.sides = [2]side{sideOf(e.before), sideOf(e.after)}
	e.build = &pairing.Build{Key: e.key(), Cluster: e.clusterOf}
	if e.before != nil {
		e.build.Before = withoutNil(e.before.Files)
	}
	if e.after == nil {
		return
	}
	e.build.After = withoutNil(e.after.Files)
	e.leaveOutMended()
	e.remarks = e.leaveOutLeft()
	failed, _ := failedParts(e.after, e.before)
	if len(failed) == 0 {
		return
	}
	e.leaveOutMadeBySets(failed)
	built := e.after.Built
	e.failed = "not rendered any more: "
	added := slices.DeleteFunc(slices.Clone(failed), e.sides[0].has)
	switch {
	case len(added) == len(failed):
		e.failed = "added, and cannot be rendered: "
	case !slices.ContainsFunc(failed, func(name string) bool { return !failsIn(e.before, name) }):
		e.failed = "cannot be rendered, for another reason than before: "
	}
	e.failed += fmt.Sprintf("%s: %v", foreign.List(failed, shownParts), built.ReasonsOf(failed))
	publish.KeepFailed(e.build.After, e.build.Before, built.WithoutFailed(added)) // nothing is published of what is new
}

// leaveOutMadeBySets leaves out the Applications of ApplicationSets that fail now only: those that can be rendered are not among
// the objects.
func (e *endPair) leaveOutMadeBySets(failed []string) {
	for name, text := range e.build.After {
		object := result.RefTo(decode(text)).String()
		if slices.Contains(failed, object) && !e.sides[0].has(object) && slices.ContainsFunc(unitsOf(e.before), func(unit render.Unit) bool {
			return unit.FullName() == object
		}) {
			delete(e.build.After, name)
		}
	}
}

// leaveOutMended leaves out the files of units that could not be rendered at the first end, and can be now.
func (e *endPair) leaveOutMended() {
	first, second := e.before.Response(), e.after.Response()
	if first == nil || second == nil {
		return
	}
	for _, unit := range first.Failed {
		if slices.Contains(second.Failed, unit) {
			continue
		}
		found := false
		for name := range e.build.After {
			if publish.IsOfUnit(name, unit) {
				delete(e.build.After, name)
				found = true
			}
		}
		if found {
			e.mended = append(e.mended, first.NameOfUnit(unit))
		}
	}
}

// failsIn reports whether a unit or release of a result cannot be rendered.
func failsIn(r *Result, name string) bool {
	response := r.Response()
	return response != nil && slices.Contains(response.NotRendered(), name)
}

// has reports whether there is the object of a unit or release, by its kind and name.
func (s side) has(name string) bool {
	return slices.ContainsFunc(s.objects, func(o render.Object) bool { return o.Ref().String() == name })
}

// ofOneRun are parts of reasons that differ between two renders of the same.
var ofOneRun = lazyregexp.New(`https?://\S+|[0-9a-f]{7,}|[0-9]+(\.[0-9]+)*`)

// withoutAdvice returns a line of a reason without what differs between renders of the same, and without what follows
// on what is wrong.
func withoutAdvice(line string) string {
	line, _, _ = strings.Cut(line, "; ")
	line, _, _ = strings.Cut(line, ", did you mean ")
	return ofOneRun.ReplaceAllString(strings.TrimSpace(line), "#")
}

// isSameCause reports whether a failure at the second end has no reason that the first one had not.
func isSameCause(before, after error) bool {
	known := map[string]bool{}
	for line := range strings.Lines(before.Error()) {
		known[withoutAdvice(line)] = true
	}
	for line := range strings.Lines(after.Error()) {
		if !known[withoutAdvice(line)] {
			return false
		}
	}
	return true
}

func withoutNil(files map[string][]byte) map[string][]byte {
	if files == nil {
		return map[string][]byte{}
	}
	return maps.Clone(files)
}

// Without returns a result without units and releases that could not be rendered, as NotRendered names them.
func (r Result) Without(names []string) Result {
	built := *r.Built
	built.Response = built.WithoutFailed(names)
	built.Units = slices.DeleteFunc(slices.Clone(built.Units), func(unit render.Unit) bool {
		return slices.Contains(names, unit.FullName())
	})
	r.Built = &built
	return r
}

// unitOf returns the unit of a file at an end, or nil.
func (e *endPair) unitOf(path string, after bool) *render.Unit {
	r := e.before
	if after {
		r = e.after
	}
	response := r.Response()
	if response == nil {
		return nil
	}
	for i, unit := range response.Units {
		if publish.IsOfUnit(path, unit.Name) {
			return &response.Units[i]
		}
	}
	return nil
}

// clusterOf returns the cluster that a file is for at an end, or "".
func (e *endPair) clusterOf(path string, after bool) string {
	if unit := e.unitOf(path, after); unit != nil {
		return unit.Cluster
	}
	return ""
}

// staysBecause returns why an object that is no longer rendered stays in the cluster, or "".
func (e *endPair) staysBecause(path string, text []byte) string {
	if why := keptByItself(decode(text)); why != "" {
		return why
	}
	unit := e.unitOf(path, false)
	if unit == nil {
		return ""
	}
	if unit.Kind == "Kustomization" {
		return e.sides[0].unitKeeps(unit.Name, e.sides[1], nil)
	}
	name := unit.Kind + " " + unit.Name
	if now := e.unitOf(path, true); now != nil {
		switch {
		case now.Keeps != "":
			return fmt.Sprintf("%s does not prune it: %s", name, now.Keeps)
		case hasSyncOption(text, "Prune=false"):
			return "its annotation has Prune=false"
		}
		return ""
	}
	gone := e.after == nil || !slices.Contains(e.after.Built.Failed, unit.Name)
	switch {
	case gone && unit.Outlived != "":
		return fmt.Sprintf("%s is deleted, and %s", name, unit.Outlived)
	case gone && hasSyncOption(text, "Delete=false"):
		return "its annotation has Delete=false"
	}
	return ""
}

// hasSyncOption reports whether an object has an option of Argo CD in its annotation.
func hasSyncOption(text []byte, option string) bool {
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		if string(bytes.Trim(key, `"'`)) == "argocd.argoproj.io/sync-options" && bytes.Contains(value, []byte(option)) {
			return true
		}
	}
	return false
}

// markKept makes deletions of objects that stay in the cluster changes of their own kind.
func (e *endPair) markKept(target *TargetChange, units []*group.Unit, notes objectNotes) {
	for _, u := range units {
		if u.Kind != group.Deleted {
			continue
		}
		if why := e.staysBecause(u.Path, e.build.Before[u.Path]); why != "" {
			u.Kind = group.Orphaned
			target.Deleted--
			target.Orphaned++
			notes.of(e.key(), u.Path).stays = why
		}
	}
}
