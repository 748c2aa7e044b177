// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/source"
)

// compare renders both ends and compares them. What the comparison does not show is among its notes.
func (o *reviewOptions) compare(ctx context.Context, streams Streams, version string, base,
	head *end) (*dryrun.Comparison, error) {
	before, closing, err := o.startRenderer(streams, version)
	if err != nil {
		return nil, err
	}
	defer closing()
	before.Instead, before.Builder.AnyRemote, before.Builder.Review = base.supply, true, true
	after := &dryrun.Renderer{
		Fetcher: before.Fetcher, Builder: before.Builder, Secrets: before.Secrets, Workers: before.Workers,
		Progress: before.Progress,
		Instead:  head.supply, KeepFiles: true,
	}
	notes := &reviewNotes{}
	notes.addMirrors(o.urls, slices.Concat(base.entries, head.entries))
	unused := leftOut(base, head)
	addDead(unused, base, head)
	base.leaveOut(unused, nil)
	head.leaveOut(unused, nil)
	untouched := leaveOutUntouched(base, head)
	look := after.Look(ctx, head.entries, base.entries, base.snapshot.Tree, head.changed)
	deployed := look.Directories.Deployed(keysOf(base, head))
	base.leaveOut(deployed, look.Same)
	head.leaveOut(deployed, look.Same)
	earlier := before.All(ctx, base.entries)
	deployed = dryrun.DirectoriesOf(earlier).Deployed(keysOf(base, head))
	head.leaveOut(deployed, nil)
	earlier = withoutKeys(earlier, func(key string) bool { return deployed[key] })
	now, kept := renderSecond(ctx, before, after, base, head, earlier, look.Others)
	from := "commit " + base.name
	now, loose := withoutLooseFailures(now, earlier, head.isLoose)
	c, still := after.CompareEnds(ctx, from, withoutFailed(earlier, loose), now)
	c.AddUnaffected(from, look.Same)
	c.AddUntouched(untouched)
	kept.keepChanged(c)
	kept.print(notes, now)
	notes.addLoose(c, head.loose)
	notes.addMaybe(c, head.maybe)
	mended := keySet{}
	for _, one := range still {
		mended[one.Build] = mended[one.Build] || one.Mended && len(one.Parts) == 0
	}
	changed := uncoveredFiles(head, earlier, withoutKeys(now, func(key string) bool { return mended[key] }))
	changed = notes.addUnused(unused, changed)
	if changed, err = o.addWritten(c, base, head, changed, look.Gaps, earlier, now); err != nil {
		return nil, err
	}
	changed = withoutNamed(changed, c)
	notes.addUncovered(changed)
	c.SetUnseen(len(changed))
	still = append(still, loose...)
	for _, one := range look.Gaps {
		still = append(still, dryrun.StillOf(one))
	}
	notes.addClaims(c, base, head)
	notes.addUnvalidated(c, before.Builder.Validator != nil)
	notes.addVariables(now)
	notes.addStill(still)
	c.Notes = notes.lines
	o.bar.clearLine()
	return c, ctx.Err()
}

// leaveOutUntouched leaves out the builds that read nothing that differs, and returns how many there are.
func leaveOutUntouched(base, head *end) int {
	digests := map[string]string{}
	for _, e := range base.entries {
		digests[e.Key] = e.Digest
	}
	untouched := map[string]int{}
	for _, e := range head.entries {
		if base.untouched[e.Key] && head.untouched[e.Key] && digests[e.Key] == e.Digest {
			untouched[e.Key] = 1
		}
	}
	base.leaveOut(nil, untouched)
	head.leaveOut(nil, untouched)
	return len(untouched)
}

// renderSecond renders the second end, and again at both ends what has releases that can be rendered at one of them only: what
// an Application or a HelmRelease deploys is compared if it can be rendered at both, and the object itself otherwise. known are
// results of the second end without the injection that the first one has.
func renderSecond(ctx context.Context, before, after *dryrun.Renderer, base, head *end,
	earlier, known []dryrun.Result) (now []dryrun.Result, kept keptReleases) {
	// Jobs keep the injection that they have at the first end, so that the other one is injected again; its builds are
	// remembered.
	after.Before = filesOf(earlier)
	now = after.AllBut(ctx, head.entries, known)
	kept = keptReleases{}
	for kept.add(earlier, now) {
		kept.settle(earlier)
		kept.settle(now)
		replaceResults(earlier, before.All(ctx, kept.keep(base.entries)))
		after.Before = filesOf(earlier)
		replaceResults(now, after.All(ctx, kept.keep(head.entries)))
	}
	return now, kept
}

// withoutLooseFailures leaves out the builds that cannot be rendered any more, and that nothing leads to which a cluster applies, such as
// templates for people.
func withoutLooseFailures(now, earlier []dryrun.Result, isLoose func(key string) bool) (kept []dryrun.Result, failed []dryrun.Still) {
	before := map[string]bool{} // which failed
	for _, r := range earlier {
		before[r.Entry.Key] = r.Err != nil
	}
	for _, r := range now {
		if r.Err != nil && isLoose(r.Entry.Key) { // for another reason than before, too
			failed = append(failed, dryrun.Still{Build: r.Entry.Key, Err: r.Err, Loose: !before[r.Entry.Key]})
			continue
		}
		kept = append(kept, r)
	}
	return kept, failed
}

// withoutFailed leaves out the builds that failed at the other end: their objects are not deleted.
func withoutFailed(results []dryrun.Result, failed []dryrun.Still) []dryrun.Result {
	return withoutKeys(results, func(key string) bool {
		return slices.ContainsFunc(failed, func(one dryrun.Still) bool { return one.Build == key })
	})
}

// keySet has keys of builds.
type keySet map[string]bool

// leftOut returns the builds that no cluster applies, at either end.
func leftOut(base, head *end) keySet {
	out := keySet{}
	for _, one := range []*end{base, head} {
		for key, is := range one.leftOut {
			out[key] = out[key] || is
		}
	}
	return out
}

// addDead adds the builds that are removed, and that nothing led to which a cluster applies: no object is deleted with them. One that is new
// may be such a build in another place.
func addDead(unused keySet, base, head *end) {
	for key, isLoose := range head.loose {
		if _, known := base.loose[key]; isLoose && !known {
			return
		}
	}
	for key, isLoose := range base.loose {
		if _, still := head.loose[key]; isLoose && !still {
			unused[key] = true
		}
	}
}

// leaveOut leaves out the builds that Applications deploy, and those that are the same at both ends.
func (e *end) leaveOut(deployed map[string]bool, same map[string]int) {
	e.entries = slices.DeleteFunc(e.entries, func(one catalog.Entry) bool {
		_, ok := same[one.Key]
		return ok || deployed[one.Key]
	})
}

// keysOf returns the keys of the builds at both ends.
func keysOf(ends ...*end) (keys []string) {
	for _, one := range ends {
		for _, e := range one.entries {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

func withoutKeys(results []dryrun.Result, drop func(key string) bool) []dryrun.Result {
	return slices.DeleteFunc(slices.Clone(results), func(r dryrun.Result) bool { return drop(r.Entry.Key) })
}

// filesOf returns a function that returns the files of a pipeline among results.
func filesOf(results []dryrun.Result) func(catalog.Entry) map[string][]byte {
	files := map[string]map[string][]byte{}
	for _, r := range results {
		files[r.Entry.Key] = r.Files
	}
	return func(e catalog.Entry) map[string][]byte { return files[e.Key] }
}

// replaceResults replaces the results of the same builds.
func replaceResults(all, by []dryrun.Result) {
	for _, r := range by {
		i := slices.IndexFunc(all, func(one dryrun.Result) bool { return one.Entry.Key == r.Entry.Key })
		all[i] = r
	}
}

// supply returns the files of an end as the source of a pipeline.
func (e *end) supply(catalog.Entry, v1alpha1.NamedSource) *source.Snapshot { return e.snapshot }
