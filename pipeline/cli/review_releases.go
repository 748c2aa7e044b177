// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// unrendered are the releases of builds that could not be rendered at one end of a review, by the keys of the builds. They are compared as
// objects at both ends.
type unrendered map[string]*unrenderedBuild

type unrenderedBuild struct {
	// all is why no release of a build can be rendered, nil if some can.
	all error
	// why has the reason for each release that cannot be rendered; unlocked are those whose chart is not locked.
	why      map[v1alpha1.KeptObject]string
	unlocked map[v1alpha1.KeptObject]bool
}

// unrenderedReleases returns the releases that fail at either end.
func unrenderedReleases(ends ...[]dryrun.Result) unrendered {
	out := unrendered{}
	for _, r := range slices.Concat(ends...) {
		if r.Entry.Pipeline == nil || r.Entry.Pipeline.Spec.Build.Releases == nil {
			continue
		}
		if out[r.Entry.Key] == nil {
			out[r.Entry.Key] = &unrenderedBuild{why: map[v1alpha1.KeptObject]string{}, unlocked: map[v1alpha1.KeptObject]bool{}}
		}
		one := out[r.Entry.Key]
		if r.Err != nil {
			one.all = r.Err
			continue
		}
		for _, found := range r.Built.Results {
			one.add(found)
		}
	}
	maps.DeleteFunc(out, func(_ string, one *unrenderedBuild) bool { return one.all == nil && len(one.why) == 0 })
	return out
}

// releaseKinds are the kinds of releases.
var releaseKinds = []string{"HelmRelease", "Application", "ApplicationSet"}

// add adds the release that a result of a build is about, if that release could not be rendered.
func (u *unrenderedBuild) add(found result.Result) {
	failed := found.Tags[result.TagCode] == render.CodeNotRendered || found.Tags[render.TagUnit] != ""
	ref := found.ResourceRef
	if found.Severity != result.Error || !failed || ref == nil || !slices.Contains(releaseKinds, ref.Kind) {
		return
	}
	kept := v1alpha1.KeptObject{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	u.why[kept] = found.String()
	u.unlocked[kept] = found.Tags[render.TagUnlocked] != ""
}

// keepIn returns the entries of the builds, changed so that their releases that cannot be rendered stay objects.
func (u unrendered) keepIn(entries []catalog.Entry) (out []catalog.Entry) {
	for _, e := range entries {
		one := u[e.Key]
		if one == nil || e.Pipeline == nil || e.Pipeline.Spec.Build.Releases == nil {
			continue
		}
		plain := *e.Pipeline
		if one.all == nil {
			releases := *plain.Spec.Build.Releases
			releases.Keep = slices.Concat(releases.Keep, slices.Collect(maps.Keys(one.why)))
			plain.Spec.Build.Releases = &releases
		} else {
			plain.Spec.Build.Releases = nil
		}
		e.Pipeline = &plain
		out = append(out, e)
	}
	return out
}

// maxUnrendered is how many releases or builds a line names.
const maxUnrendered = 5

// print names what could not be rendered: once what a lock would help, and once the rest.
func (u unrendered) print(w io.Writer) {
	var unlocked, others, builds []string
	reason := ""
	for _, key := range slices.Sorted(maps.Keys(u)) {
		one := u[key]
		if one.all != nil {
			builds = append(builds, key)
			reason = one.all.Error()
			continue
		}
		for kept, why := range one.why {
			name := kept.Kind + " " + kept.Namespace + "/" + kept.Name
			if one.unlocked[kept] {
				unlocked = append(unlocked, name)
			} else {
				others = append(others, name+" ("+why+")")
			}
		}
	}
	report := func(noun, cause string, names []string) {
		slices.Sort(names)
		names = slices.Compact(names)
		if len(names) > 0 {
			fmt.Fprintf(w, "warning: %s compared as objects, not by what they install, %s: %s\n", countWithNoun(len(names), noun), cause, foreign.List(names, maxUnrendered))
		}
	}
	report("release", "as their charts are not locked (prerig lock locks them)", unlocked)
	report("release", "as they cannot be rendered", others)
	if len(builds) > 0 {
		report("build with releases", "as "+reason, builds)
	}
}
