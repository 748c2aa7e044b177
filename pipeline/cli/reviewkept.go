// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// keptReleases are the HelmReleases and Applications of each build that a review compares as objects, as they cannot be
// rendered.
type keptReleases map[string]*keptOfBuild

// keptOfBuild are those of one build.
type keptOfBuild struct {
	why      map[v1alpha1.KeptObject]string // why each cannot be rendered
	unlocked map[v1alpha1.KeptObject]bool   // those whose charts are not locked
	reason   error                          // why the first of them cannot be rendered
	all      bool                           // none is rendered
	changed  bool                           // in the last call of add
	// unchanged are those whose objects are the same at both ends, with the reasons.
	unchanged []string
	// settled reports whether the results without the releases are known: nothing has to be rendered again.
	settled bool
}

// add notes the releases that failed at either end. It reports whether there are new ones, whose builds have to be
// rendered again. A build that fails again without them is rendered with none.
func (k keptReleases) add(base, head []dryrun.Result) (more bool) {
	for _, one := range k {
		one.changed, one.settled = false, true
	}
	first := map[string]map[string]bool{}
	for i, r := range slices.Concat(base, head) {
		if r.Entry.Pipeline == nil || r.Entry.Pipeline.Spec.Build.Releases == nil {
			continue
		}
		failed, err := failedReleases(r, func(one result.Result) bool {
			return i < len(base) || one.Tags[render.TagUnlocked]+one.Tags[render.TagOutside] != "" ||
				first[r.Entry.Key][one.ResourceRef.String()]
		})
		if i < len(base) {
			first[r.Entry.Key] = namesOf(failed)
		}
		if len(failed) == 0 && (err == nil || i >= len(base)) {
			continue // what the change has broken is an error
		}
		one := k[r.Entry.Key]
		if one == nil {
			one = &keptOfBuild{why: map[v1alpha1.KeptObject]string{}, unlocked: map[v1alpha1.KeptObject]bool{},
				reason: err, settled: true}
			k[r.Entry.Key] = one
		}
		known := len(one.why)
		for _, found := range failed {
			kept := v1alpha1.KeptObject{Kind: found.ResourceRef.Kind, Namespace: found.ResourceRef.Namespace,
				Name: found.ResourceRef.Name}
			one.why[kept] = found.Message
			one.unlocked[kept] = found.Tags[render.TagUnlocked] != ""
		}
		if len(one.why) == known && !one.all && !one.changed && r.Err != nil {
			one.all, one.changed = true, true
		}
		one.changed = one.changed || len(one.why) > known
		more = more || one.changed
	}
	for _, r := range slices.Concat(base, head) {
		if one := k[r.Entry.Key]; one != nil && one.changed {
			one.settled = one.settled && !one.all && isSettled(r, one)
		}
	}
	return more
}

// isSettled reports whether a result without the releases that are kept is the result of a render that keeps them: each of them
// fails by itself, or is not in the result.
func isSettled(r dryrun.Result, kept *keptOfBuild) bool {
	response := r.Response()
	if response == nil || r.Err != nil {
		return false
	}
	failed := response.NotRendered()
	for one := range kept.why {
		name := nameOfKept(one)
		isObject := slices.ContainsFunc(response.Objects, func(o render.Object) bool { return o.Ref().String() == name })
		isUnit := slices.ContainsFunc(response.Units, func(u render.Unit) bool { return u.FullName() == name })
		if !slices.Contains(failed, name) && (isObject || isUnit) {
			return false
		}
	}
	names := namesOfKept(kept)
	return !slices.ContainsFunc(response.Results, func(one result.Result) bool { // a HelmRelease fails the Application that it is of
		unit := response.NameOfUnit(one.Tags[render.TagUnit])
		isKept := one.Severity == result.Error && one.ResourceRef != nil && slices.Contains(names, one.ResourceRef.String())
		return isKept && slices.Contains(failed, unit) && unit != one.ResourceRef.String()
	})
}

func nameOfKept(one v1alpha1.KeptObject) string {
	return one.Kind + " " + strings.TrimPrefix(one.Namespace+"/"+one.Name, "/")
}

func namesOfKept(kept *keptOfBuild) (names []string) {
	for one := range kept.why {
		names = append(names, nameOfKept(one))
	}
	return names
}

// settle makes results those of a render that keeps the releases, where that is known.
func (k keptReleases) settle(results []dryrun.Result) {
	for i, r := range results {
		if one := k[r.Entry.Key]; one != nil && one.changed && one.settled {
			results[i] = r.Without(namesOfKept(one))
			results[i].Entry = k.entry(r.Entry)
		}
	}
}

func namesOf(failed result.Results) map[string]bool {
	out := map[string]bool{}
	for _, one := range failed {
		out[one.ResourceRef.String()] = true
	}
	return out
}

// failedReleases returns the results about releases of a build that failed and that count, and why the first of them did, or the build.
func failedReleases(r dryrun.Result, counts func(result.Result) bool) (failed result.Results, err error) {
	err = r.Err
	if r.Response() == nil {
		return nil, err
	}
	for _, one := range r.Built.Results {
		if one.Severity != result.Error || one.ResourceRef == nil ||
			!slices.Contains(v1alpha1.KeptKinds, one.ResourceRef.Kind) {
			continue
		}
		if !counts(one) {
			continue
		}
		failed = append(failed, one)
		if err == nil {
			err = errors.New(one.String())
		}
	}
	return failed, err
}

// keep returns the entries of builds to render again, changed so that the new releases stay objects.
func (k keptReleases) keep(entries []catalog.Entry) (out []catalog.Entry) {
	for _, e := range entries {
		if one := k[e.Key]; one != nil && one.changed && !one.settled && e.Pipeline != nil {
			out = append(out, k.entry(e))
		}
	}
	return out
}

// entry returns an entry that is changed so that the releases of the build that are kept stay objects.
func (k keptReleases) entry(e catalog.Entry) catalog.Entry {
	one := k[e.Key]
	changed := *e.Pipeline
	releases := e.Pipeline.Spec.Build.Releases
	changed.Spec.Build.Releases = nil
	if releases != nil && !one.all {
		copied := *releases
		copied.Keep = slices.Concat(copied.Keep, slices.Collect(maps.Keys(one.why)))
		changed.Spec.Build.Releases = &copied
	}
	e.Pipeline = &changed
	return e
}

// print names what is compared as objects. Builds that fail anyhow are named elsewhere.
func (k keptReleases) print(w io.Writer, results []dryrun.Result) {
	for _, r := range results {
		if r.Err != nil {
			delete(k, r.Entry.Key)
		}
	}
	var unlocked, others, builds, unchanged []string
	reason := ""
	for _, key := range slices.Sorted(maps.Keys(k)) {
		one := k[key]
		if one.all {
			builds = append(builds, key)
			reason, _, _ = strings.Cut(readingObjects.ReplaceAllString(one.reason.Error(), ""), "\n")
			continue
		}
		unchanged = append(unchanged, one.unchanged...)
		for kept, why := range one.why {
			if one.unlocked[kept] {
				unlocked = append(unlocked, nameOfKept(kept))
			} else {
				others = append(others, nameOfKept(kept)+" ("+firstReason(why)+")")
			}
		}
	}
	printKept(w, "release", "as their charts are not locked (prerig lock locks them)", unlocked)
	printKept(w, "release", "as they cannot be rendered", others)
	if unchanged = slices.Compact(slices.Sorted(slices.Values(unchanged))); len(unchanged) > 0 {
		const show = 2
		fmt.Fprintf(w, "info: %s that cannot be rendered and whose objects are unchanged: %s\n",
			countWithNoun(len(unchanged), "release"), foreign.List(unchanged, show))
	}
	printKept(w, "build", "as "+strings.TrimPrefix(reason, "error: "), builds)
}

// firstReason returns what of a reason is not for pipelines, and not too long.
func firstReason(why string) string {
	const longest = 300
	why, _, _ = strings.Cut(why, "; ")
	return foreign.Head(why, longest)
}

// readingObjects is a part of a reason that names a field of a pipeline, which a review does not have.
var readingObjects = lazyregexp.New(`reading spec\.build\.releases\.objects\[\d+\]: `)

// maxKept is how many releases or builds a line names.
const maxKept = 5

// printKept names releases or builds, and why they are compared as objects.
func printKept(w io.Writer, noun, cause string, names []string) {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 0 {
		fmt.Fprintf(w, "warning: %s compared as objects, not by what they install, %s: %s\n",
			countWithNoun(len(names), noun), cause,
			foreign.List(names, maxKept))
	}
}
