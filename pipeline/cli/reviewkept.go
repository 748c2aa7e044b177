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
}

// add notes the releases that failed at either end. It reports whether there are new ones, whose builds have to be
// rendered again. A build that fails again without them is rendered with none.
func (k keptReleases) add(base, head []dryrun.Result) (more bool) {
	for _, one := range k {
		one.changed = false
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
				reason: err}
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
	return more
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

// keep returns the entries of builds with new releases to keep, changed so that these stay objects.
func (k keptReleases) keep(entries []catalog.Entry) (out []catalog.Entry) {
	for _, e := range entries {
		one := k[e.Key]
		if one == nil || !one.changed || e.Pipeline == nil {
			continue
		}
		changed := *e.Pipeline
		changed.Spec.Build.Releases = nil
		if releases := e.Pipeline.Spec.Build.Releases; releases != nil && !one.all {
			copied := *releases
			copied.Keep = slices.Concat(copied.Keep, slices.Collect(maps.Keys(one.why)))
			changed.Spec.Build.Releases = &copied
		}
		e.Pipeline = &changed
		out = append(out, e)
	}
	return out
}

// print names what is compared as objects. Builds that fail anyhow are named elsewhere.
func (k keptReleases) print(w io.Writer, results []dryrun.Result) {
	for _, r := range results {
		if r.Err != nil {
			delete(k, r.Entry.Key)
		}
	}
	var unlocked, others, builds []string
	reason := ""
	for _, key := range slices.Sorted(maps.Keys(k)) {
		one := k[key]
		if one.all {
			builds = append(builds, key)
			reason, _, _ = strings.Cut(readingObjects.ReplaceAllString(one.reason.Error(), ""), "\n")
			continue
		}
		for kept, why := range one.why {
			name := kept.Kind + " " + strings.TrimPrefix(kept.Namespace+"/"+kept.Name, "/")
			if one.unlocked[kept] {
				unlocked = append(unlocked, name)
			} else {
				why, _, _ = strings.Cut(why, "; ") // what follows is for pipelines
				others = append(others, name+" ("+why+")")
			}
		}
	}
	printKept(w, "release", "as their charts are not locked (prerig lock locks them)", unlocked)
	printKept(w, "release", "as they cannot be rendered", others)
	printKept(w, "build", "as "+strings.TrimPrefix(reason, "error: "), builds)
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
