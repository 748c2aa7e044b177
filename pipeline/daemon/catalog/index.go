// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// AnnotationFluxSource names the Flux source that represents a pipeline's source: KIND/NAMESPACE/NAME. Flux events
// do not contain the URL of a source; without the annotation all pipelines of the kind that follow the same branch
// or tag are checked, at the cost of one request to each of their servers.
const AnnotationFluxSource = "prerig.dev/flux-source"

// watchedRef is what a pipeline follows.
type watchedRef struct {
	key string
	ref string // full Git reference or OCI tag; empty: any branch
}

// changeIndex finds pipelines by what changed.
type changeIndex struct {
	git  map[string][]watchedRef // by normal URL
	oci  map[string][]watchedRef // by repository with its host
	path map[string][]watchedRef // OCI, by repository without a host
	flux map[string][]watchedRef // by KIND/NAMESPACE/NAME
	kind map[string][]watchedRef // Flux, by kind

	proposed map[string][]watchedRef // by normal URL: branches that pull requests go to and are from
	previews map[string][]watchedRef // by normal URL: branches whose pull requests are previewed

	matching sync.Mutex
	matched  map[string][]string // what Match has found for changes of one branch or tag
	room     int                 // for more of it
}

// originKey represents a repository of the pipelines themselves, by its index. It cannot collide with the key of a
// pipeline.
func originKey(i int) string { return "\x00origin" + strconv.Itoa(i) }

func isOriginKey(key string) bool { return strings.HasPrefix(key, "\x00") }

func newIndex(entries map[string]Entry, origins []*origin) *changeIndex {
	x := &changeIndex{git: map[string][]watchedRef{}, oci: map[string][]watchedRef{}, path: map[string][]watchedRef{}, flux: map[string][]watchedRef{}, kind: map[string][]watchedRef{}, proposed: map[string][]watchedRef{}, previews: map[string][]watchedRef{}}
	for _, e := range entries {
		if e.Pipeline != nil {
			x.addPipeline(e.Key, e.Pipeline)
		}
	}
	for i, o := range origins {
		if o.repo == nil {
			continue
		}
		w := watchedRef{key: originKey(i), ref: o.repo.Ref}
		url := giturl.Normal(o.repo.URL)
		x.git[url] = append(x.git[url], w)
		x.kind["GitRepository"] = append(x.kind["GitRepository"], w)
	}
	return x
}

func (x *changeIndex) addPipeline(key string, p *v1alpha1.RenderPipeline) {
	for _, to := range p.Spec.Publish {
		if to.Git == nil || to.Git.PullRequest == nil {
			continue
		}
		url := giturl.Normal(to.Git.URL)
		head := "refs/heads/" + to.Git.PullRequest.Head
		if to.Git.PullRequest.GroupBy == v1alpha1.GroupBySourceCommit {
			head += "/"
		}
		x.proposed[url] = append(x.proposed[url], watchedRef{key, "refs/heads/" + to.Git.Branch}, watchedRef{key, head})
	}
	x.addPreview(key, p)
	for _, source := range p.AllSources() {
		flux := ""
		if source.MountPath == "" {
			flux = p.Metadata.Annotations[AnnotationFluxSource]
		}
		x.addSource(key, source.Source, flux)
	}
}

// addSource adds a source of a pipeline and the Flux source that represents it, or "" if unknown.
func (x *changeIndex) addSource(key string, source v1alpha1.Source, flux string) {
	kind := ""
	w := watchedRef{key: key}
	switch {
	case source.Git != nil:
		ref := source.Git.Ref
		switch {
		case ref.Commit != "":
			return // it never changes
		case ref.Name != "":
			w.ref = ref.Name
		case ref.Tag != "":
			w.ref = "refs/tags/" + ref.Tag
		case ref.Branch != "":
			w.ref = "refs/heads/" + ref.Branch
		}
		url := giturl.Normal(source.Git.URL)
		x.git[url] = append(x.git[url], w)
		kind = "GitRepository"
	case source.OCI != nil:
		if source.OCI.Ref.Digest != "" {
			return
		}
		if w.ref = source.OCI.Ref.Tag; w.ref == "" {
			w.ref = "latest"
		}
		name := v1alpha1.RepositoryKey(source.OCI.URL)
		x.oci[name] = append(x.oci[name], w)
		_, path, _ := strings.Cut(name, "/")
		x.path[path] = append(x.path[path], w)
		kind = "OCIRepository"
	default:
		return
	}
	if flux != "" {
		x.flux[flux] = append(x.flux[flux], w)
		return
	}
	x.kind[kind] = append(x.kind[kind], w)
}

// maxMatched bounds what is remembered of changes, in keys.
const maxMatched = 1 << 16

// matchChanges is Match. Of a repository with many pipelines most changes are of the same branch.
func (x *changeIndex) matchChanges(changes []event.Change) []string {
	what, err := json.Marshal(withoutCommits(changes))
	if err != nil {
		panic(err) // it is plain data
	}
	x.matching.Lock()
	defer x.matching.Unlock()
	if keys, ok := x.matched[string(what)]; ok {
		return keys
	}
	found := map[string]bool{}
	for _, change := range changes {
		x.matchChange(change, func(key string) { found[key] = true })
	}
	keys := make([]string, 0, len(found))
	for key := range found {
		if !isOriginKey(key) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	keys = slices.Clip(keys)
	if x.room -= 1 + len(keys); x.room < 0 {
		x.matched, x.room = map[string][]string{}, maxMatched
	}
	x.matched[string(what)] = keys
	return keys
}

// withoutCommits returns changes without the commits of branches, which do not matter for what they could touch.
func withoutCommits(changes []event.Change) []event.Change {
	out := slices.Clone(changes)
	for i, change := range out {
		if change.Git != nil {
			git := *change.Git
			git.Before, git.After = "", ""
			out[i].Git = &git
		}
	}
	return out
}

func (x *changeIndex) matchProposed(change event.Change, found func(key string)) {
	var urls []string
	ref := ""
	switch {
	case change.Git != nil:
		urls, ref = change.Git.URLs, change.Git.Ref
	case change.Pull != nil && change.Pull.Decided:
		if urls, ref = change.Pull.URLs, change.Pull.Head; ref == "" {
			ref = change.Pull.Base
		}
		if ref != "" {
			ref = "refs/heads/" + ref
		}
	}
	for _, url := range urls {
		for _, w := range x.proposed[giturl.Normal(url)] {
			if strings.HasSuffix(w.ref, "/") && strings.HasPrefix(ref, w.ref) || refMatches(w.ref, ref) {
				found(w.key)
			}
		}
	}
}

// originsForChanges returns the repositories of pipelines that the changes could touch.
func (c *Catalog) originsForChanges(changes []event.Change) (out []*origin) {
	x := c.currentIndex()
	found := map[string]bool{}
	for _, change := range changes {
		x.matchChange(change, func(key string) { found[key] = true })
	}
	for i, o := range c.origins {
		if found[originKey(i)] {
			out = append(out, o)
		}
	}
	return out
}

// Concerns reports whether the changes could touch a repository of the pipelines themselves.
func (c *Catalog) Concerns(changes []event.Change) bool { return len(c.originsForChanges(changes)) > 0 }

// Watches reports whether any pipeline, or a repository of the pipelines themselves, could be touched.
func (c *Catalog) Watches(changes []event.Change) bool {
	x := c.currentIndex()
	any := false
	for _, change := range changes {
		x.matchChange(change, func(string) { any = true })
		x.matchProposed(change, func(string) { any = true })
		x.matchPull(change, func(string) { any = true })
	}
	return any
}

func (x *changeIndex) matchChange(change event.Change, found func(key string)) {
	switch {
	case change.Git != nil:
		if change.Git.Deleted {
			return
		}
		for _, url := range change.Git.URLs {
			for _, w := range x.git[giturl.Normal(url)] {
				if refMatches(w.ref, change.Git.Ref) {
					found(w.key)
				}
			}
		}
	case change.OCI != nil:
		watches := x.path[strings.ToLower(change.OCI.Repository)]
		if change.OCI.Host {
			watches = x.oci[v1alpha1.RepositoryKey(change.OCI.Repository)]
		}
		for _, w := range watches {
			if change.OCI.Tag == "" || change.OCI.Tag == w.ref {
				found(w.key)
			}
		}
	case change.Flux != nil:
		f := change.Flux
		ref := f.Ref()
		for _, w := range slices.Concat(x.flux[f.Kind+"/"+f.Namespace+"/"+f.Name], x.kind[f.Kind]) {
			short := strings.TrimPrefix(strings.TrimPrefix(w.ref, "refs/heads/"), "refs/tags/")
			if ref == "" || w.ref == "" || ref == w.ref || ref == short {
				found(w.key)
			}
		}
	}
}

// refMatches reports whether a pipeline that follows want could be touched by a change of ref. Which branch is the default one is
// not known here.
func refMatches(want, ref string) bool {
	switch {
	case ref == "":
		return true
	case want == "":
		return strings.HasPrefix(ref, "refs/heads/") || !strings.HasPrefix(ref, "refs/")
	}
	return want == ref || want == "refs/heads/"+ref || want == "refs/tags/"+ref
}
