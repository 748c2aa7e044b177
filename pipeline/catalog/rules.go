// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/giturl"
	"github.com/prerig/prerig/pipeline/tenant"
)

// Rules are what pipelines must keep to beside being valid by themselves, so that their authors need not trust each other.
type Rules struct {
	// AllowHostFiles lets pipelines publish to directories that Git hosts act upon, such as .github.
	AllowHostFiles bool
	// Tenants are the directories that pipelines must lie in, and what their authors may do. None means one team that may do all.
	Tenants []tenant.Tenant
	// Registered returns where a pipeline was known to publish to before, also before this process. It may be nil.
	Registered func(pipeline string) []v1alpha1.Publish
}

// refuse returns the entries as the rules leave them: those that break one have an error. before are the entries that were
// valid so far.
func (r Rules) refuse(entries []Entry, before map[string]Entry) []Entry {
	for i := range entries {
		r.applyTenant(&entries[i])
	}
	o := owners{rules: r, before: before, sources: map[string][]string{}, places: map[string]*claimedPlace{}}
	for _, e := range entries {
		o.addSource(e)
	}
	type claim struct {
		entry, publish int
		owned          bool
	}
	var claims []claim
	for i, e := range entries {
		if e.Pipeline == nil {
			continue
		}
		for j, to := range e.Pipeline.Spec.Publish {
			claims = append(claims, claim{i, j, o.owns(e.Key, to)})
		}
	}
	// Who publishes there already comes first; of two who are new, the first by name.
	slices.SortStableFunc(claims, func(a, b claim) int {
		if a.owned != b.owned {
			return map[bool]int{true: -1, false: 1}[a.owned]
		}
		return strings.Compare(entries[a.entry].Key, entries[b.entry].Key)
	})
	problems := map[int][]error{}
	for _, c := range claims {
		e := entries[c.entry]
		at := fmt.Sprintf("spec.publish[%d]", c.publish)
		if err := o.claim(e, at, e.Pipeline.Spec.Publish[c.publish], c.owned); err != nil {
			problems[c.entry] = append(problems[c.entry], err)
		}
	}
	for i, errs := range problems {
		e := &entries[i]
		e.Err, e.Pipeline = fmt.Errorf("reading %s: pipeline %s: %w", e.File, e.Key, joinLines(errors.Join(errs...))), nil
	}
	return entries
}

// applyTenant refuses what the author of an entry may not say. What is no valid pipeline must not bear the name of one of another
// tenant, as it would stand in its place.
func (r Rules) applyTenant(e *Entry) {
	if len(r.Tenants) == 0 {
		return
	}
	t, ok := tenant.Of(r.Tenants, e.File)
	if e.Pipeline == nil {
		if !e.Opaque && (!ok || !t.Owns(namespaceOf(e.Key))) {
			e.Key = e.File + "#" + e.Key
		}
		return
	}
	err := errors.New("it lies in no directory of tenants in the configuration")
	if ok {
		err = t.Check(e.Pipeline)
	}
	if err != nil {
		e.Err = fmt.Errorf("reading %s: pipeline %s: %w", e.File, e.Key, joinLines(err))
		e.Key, e.Pipeline = e.File+"#"+e.Key, nil
		return
	}
	if key := e.Pipeline.Key(); key != e.Key {
		e.Key, e.Digest = key, contentDigest([]byte(e.Digest+key))
	}
}

func namespaceOf(key string) string {
	namespace, _, ok := strings.Cut(key, "/")
	if !ok {
		return ""
	}
	return namespace
}

// owners knows what places belong to which pipeline.
type owners struct {
	rules   Rules
	before  map[string]Entry
	sources map[string][]string // pipelines by the branch that they read
	places  map[string]*claimedPlace
}

// claimedPlace is a branch, or a tag of an artifact, of which directories belong to pipelines.
type claimedPlace struct {
	byPath map[string]string // pipelines by their directory
	above  map[string]string // one of the pipelines below each directory
}

func (o *owners) addSource(e Entry) {
	if e.Pipeline == nil || e.Pipeline.Spec.Source.Git == nil {
		return
	}
	git := e.Pipeline.Spec.Source.Git
	names := []string{git.Ref.Name}
	switch {
	case git.Ref.Name != "":
	case git.Ref.Branch != "":
		names = []string{"refs/heads/" + git.Ref.Branch}
	case git.Ref == (v1alpha1.GitRef{}):
		// Which one is the default is not known before the repository is read.
		names = []string{"refs/heads/main", "refs/heads/master"}
	default:
		return
	}
	for _, name := range names {
		key := giturl.Normal(git.URL) + "\n" + name
		o.sources[key] = append(o.sources[key], e.Key)
	}
}

// owns reports whether a pipeline publishes to a place already.
func (o *owners) owns(pipeline string, to v1alpha1.Publish) bool {
	known := []v1alpha1.Publish{}
	if old, ok := o.before[pipeline]; ok && old.Pipeline != nil {
		known = old.Pipeline.Spec.Publish
	}
	if o.rules.Registered != nil {
		known = append(slices.Clone(known), o.rules.Registered(pipeline)...)
	}
	return slices.ContainsFunc(known, func(at v1alpha1.Publish) bool {
		return slices.ContainsFunc(placesOf(to), func(p publishedPlace) bool { return slices.Contains(placesOf(at), p) })
	})
}

// publishedPlace is where files or an artifact are published.
type publishedPlace struct{ key, path string }

func placesOf(to v1alpha1.Publish) (out []publishedPlace) {
	switch {
	case to.Git != nil:
		out = append(out, publishedPlace{giturl.Normal(to.Git.URL) + "\n" + to.Git.Reference(), path.Clean(to.Git.Path)})
	case to.OCI != nil:
		tags := to.OCI.Tags
		if len(tags) == 0 {
			tags = []string{"latest"}
		}
		for _, tag := range tags {
			out = append(out, publishedPlace{canonicalRepository(strings.TrimPrefix(to.OCI.URL, "oci://")) + ":" + tag, "."})
		}
	}
	return out
}

// claim gives a place to a pipeline, or says why it cannot have it.
func (o *owners) claim(e Entry, at string, to v1alpha1.Publish, owned bool) error {
	if to.Git != nil {
		if first, _, _ := strings.Cut(path.Clean(to.Git.Path), "/"); !o.rules.AllowHostFiles && isHostDirectory(first) {
			return &v1alpha1.FieldError{Path: at + ".git.path", Message: "must not be below " + first + ", which Git hosts act upon; who runs the daemon can allow it with allow_host_files"}
		}
		reading := o.sources[giturl.Normal(to.Git.URL)+"\n"+to.Git.Reference()]
		if to.Git.Adopt && !owned && slices.ContainsFunc(reading, func(key string) bool { return key != e.Key }) {
			return &v1alpha1.FieldError{Path: at + ".git.adopt", Message: "must not be set for branch " + to.Git.Branch + ", which another pipeline reads its source from"}
		}
	}
	for _, p := range placesOf(to) {
		c := o.places[p.key]
		if c == nil {
			c = &claimedPlace{map[string]string{}, map[string]string{}}
			o.places[p.key] = c
		}
		if other := c.ownerOf(p.path); other != "" && other != e.Key {
			return takenError(e, at, to, p, other)
		}
		c.give(p.path, e.Key)
	}
	return nil
}

// ownerOf returns a pipeline whose directory is this one, in it, or around it; "" where there is none.
func (c *claimedPlace) ownerOf(dir string) string {
	if other := c.above[dir]; other != "" {
		return other
	}
	for at := dir; ; at = path.Dir(at) {
		if other := c.byPath[at]; other != "" {
			return other
		}
		if at == "." || at == "/" {
			return ""
		}
	}
}

func (c *claimedPlace) give(dir, pipeline string) {
	c.byPath[dir] = pipeline
	for at := dir; at != "." && at != "/"; {
		at = path.Dir(at)
		c.above[at] = pipeline
	}
}

// takenError tells who has a place to those who may know: pipelines of other namespaces are not named.
func takenError(e Entry, at string, to v1alpha1.Publish, p publishedPlace, other string) error {
	who := "another pipeline"
	if path.Dir(e.Key) == path.Dir(other) {
		who = "pipeline " + other
	}
	if to.OCI != nil {
		return &v1alpha1.FieldError{Path: at + ".oci.tags", Message: fmt.Sprintf("%s belongs to %s: each run of one would move it away from the other", strings.ReplaceAll(p.key, "\n", " "), who)}
	}
	return &v1alpha1.FieldError{Path: at + ".git.path", Message: fmt.Sprintf("%s of branch %s is, holds, or is in a directory of %s; use another path or branch", p.path, to.Git.Branch, who)}
}

// hostDirectories are files and directories that Git hosts and their CI act upon when they are pushed.
var hostDirectories = []string{
	".github", ".gitlab", ".gitlab-ci.yml", ".gitea", ".forgejo", ".gogs", ".bitbucket", "bitbucket-pipelines.yml", ".azure-pipelines",
	"azure-pipelines.yml", ".circleci", ".buildkite", ".drone.yml", ".woodpecker", ".woodpecker.yml", ".woodpecker.yaml", ".travis.yml",
	".tekton", ".teamcity", ".cirrus.yml", ".semaphore", "jenkinsfile", ".gitmodules", ".gitattributes",
}

func isHostDirectory(name string) bool {
	return slices.Contains(hostDirectories, strings.ToLower(name))
}
