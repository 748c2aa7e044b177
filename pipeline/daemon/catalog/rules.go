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
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/secret/tenant"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/gitname"
)

// Rules are what pipelines must keep to beside being valid by themselves, so that their authors need not trust each other.
type Rules struct {
	// AllowHostFiles lets pipelines publish to directories that Git hosts act upon, such as .github.
	AllowHostFiles bool
	// Tenants are the directories that pipelines must lie in, and what their authors may do. None means one team that may do all.
	Tenants []tenant.Tenant
	// Reach is what pipelines of all may read, write and call.
	Reach tenant.Reach
	// Registered returns where a pipeline was known to publish to before, also before this process, and Names of which pipelines that
	// is known. They may be nil.
	Registered func(pipeline string) []v1alpha1.Publish
	Names      func() []string
}

// rejectBrokenEntries returns the entries as the rules leave them: those that break one have an error. before are the
// entries that were valid so far. Where pipelines may be unread, what they were known to publish to is still theirs.
func (r Rules) rejectBrokenEntries(entries []Entry, before map[string]Entry, unread func(pipeline string) bool) []Entry {
	for i := range entries {
		r.applyReach(&entries[i])
	}
	o := owners{rules: r, before: before, sources: map[string][]string{}, places: map[string]*claimedPlace{}}
	for _, e := range entries {
		o.addSource(e)
	}
	problems := map[*Entry][]error{}
	claims := append(o.claimsOfUnread(entries, unread), o.claimsOf(entries)...)
	branches := o.checkBranches(claims)
	o.checkWaves(claims, branches)
	for _, c := range claims {
		err := branches[c.id()]
		if err == nil {
			err = o.assignClaimedPlaces(c)
		}
		if err != nil && c.entry.Pipeline != nil {
			problems[c.entry] = append(problems[c.entry], err)
		}
	}
	for e, errs := range problems {
		e.markInvalid(errors.Join(errs...))
	}
	return entries
}

// markInvalid makes an entry one that is not valid.
func (e *Entry) markInvalid(err error) {
	e.Err, e.Pipeline = fmt.Errorf("reading %s: pipeline %s: %w", e.File, e.Key, joinLines(err)), nil
}

// applyTenant rejects whatever the author of an entry may not declare. An invalid pipeline must not have the name
// of another tenant's pipeline, which it would replace; the API server vouches for the name of an object.
func (e *Entry) applyTenant(all []tenant.Tenant) {
	if len(all) == 0 {
		return
	}
	t, ok := tenant.Of(all, e.File)
	e.Tenant = t.Namespaces
	if t.Sources != nil {
		e.scope = source.Scope{Submodules: t.Sources, Whose: t.Whose()}
	}
	e.notified = egress.Reach{Allowed: t.Notifications, Whose: t.Whose(), Setting: "the tenant's notifications"}
	if e.Pipeline == nil {
		if !e.isObject() && !e.Opaque && (!ok || !t.Owns(v1alpha1.NamespaceOf(e.Key))) {
			e.Key = e.File + "#" + e.Key
		}
		return
	}
	err := errors.New("it lies in no directory of tenants in the configuration")
	if ok {
		err = t.Check(e.Pipeline)
	}
	if err != nil {
		if e.markInvalid(err); !e.isObject() {
			e.Key = e.File + "#" + e.Key
		}
		return
	}
	if key := e.Pipeline.Key(); key != e.Key {
		e.Key, e.Digest = key, contentDigest([]byte(e.Digest+key))
	}
}

// isObject reports whether an entry is an object of a cluster.
func (e *Entry) isObject() bool { return e.origin != nil && e.origin.Objects != nil }

// applyReach refuses what no pipeline may name.
func (r Rules) applyReach(e *Entry) {
	if e.Pipeline == nil {
		return
	}
	if err := r.Reach.Check(e.Pipeline, "pipelines of this daemon"); err != nil {
		e.markInvalid(err)
	}
}

// MayHold reports whether an entry that is not valid could be a pipeline that is missing: its file may name only namespaces of its
// tenant, and an object is the pipeline of its own name. A file outside of all tenants' directories could be any of its repository's, and a pipeline that no tenant can have any more
// could be anywhere.
func (c *Catalog) MayHold(e Entry, pipeline string) bool {
	switch {
	case e.isObject():
		return e.File == pipeline
	case c.TenantOfNamespace(v1alpha1.NamespaceOf(pipeline)) == "":
		return true
	case len(e.Tenant) > 0:
		return slices.Contains(e.Tenant, v1alpha1.NamespaceOf(pipeline))
	}
	return len(c.origins) == 1 || e.origin.mayHave(pipeline)
}

// TenantOfNamespace returns the name and directory of the first tenant that may have pipelines in a namespace; ""
// if none may.
func (c *Catalog) TenantOfNamespace(namespace string) string {
	for _, o := range c.origins {
		for _, t := range o.restrictedTenants() {
			if t.Owns(namespace) {
				return o.label() + t.Directory
			}
		}
	}
	return ""
}

// Tenants returns the number of tenants.
func (c *Catalog) Tenants() (n int) {
	for _, o := range c.origins {
		n += len(o.restrictedTenants())
	}
	return n
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
	if e.Pipeline == nil {
		return
	}
	for _, src := range e.Pipeline.AllSources() {
		if src.Git != nil {
			o.addGitSource(e, src.Git)
		}
	}
}

func (o *owners) addGitSource(e Entry, git *v1alpha1.GitSource) {
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
		key := v1alpha1.BranchKey(git.URL, name)
		o.sources[key] = append(o.sources[key], e.Key)
	}
}

// claim is what an entry of a pipeline's spec.publish wants.
type claim struct {
	entry  *Entry
	at     string // the path of the entry of spec.publish
	to     v1alpha1.Publish
	places []v1alpha1.Place
	// owned reports whether the pipeline already publishes to one of the places.
	owned bool
}

// claimsOf returns the claims of all pipelines. Those that already publish to a place come first; new ones are
// ordered by name.
func (o *owners) claimsOf(entries []Entry) []claim {
	var claims []claim
	for i := range entries {
		e := &entries[i]
		if e.Pipeline == nil {
			continue
		}
		known := o.knownPlaces(e.Key)
		for j, to := range e.Pipeline.Spec.Publish {
			c := claim{entry: e, at: fmt.Sprintf("spec.publish[%d]", j), to: to, places: to.Places()}
			c.owned = slices.ContainsFunc(c.places, func(p v1alpha1.Place) bool { return slices.Contains(known, placeKey{p.Key, p.Path}) })
			claims = append(claims, c)
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int {
		if a.owned != b.owned {
			return map[bool]int{true: -1, false: 1}[a.owned]
		}
		return strings.Compare(a.entry.Key, b.entry.Key)
	})
	return claims
}

// claimsOfUnread returns the claims of pipelines that cannot be read now, so that no other pipeline claims their places
// meanwhile.
func (o *owners) claimsOfUnread(entries []Entry, unread func(pipeline string) bool) (claims []claim) {
	if o.rules.Names == nil || o.rules.Registered == nil {
		return nil
	}
	present := map[string]bool{}
	for _, e := range entries {
		present[e.Key] = true
	}
	for _, name := range o.rules.Names() {
		if present[name] || !unread(name) {
			continue
		}
		for _, to := range o.rules.Registered(name) {
			claims = append(claims, claim{entry: &Entry{Key: name}, to: to, places: to.Places(), owned: true})
		}
	}
	return claims
}

// placeKey identifies a place regardless of the other fields of entries that name it.
type placeKey struct{ key, path string }

// knownEntries returns the entries of a pipeline that it had before.
func (o *owners) knownEntries(pipeline string) (before []v1alpha1.Publish) {
	if old, ok := o.before[pipeline]; ok && old.Pipeline != nil {
		before = old.Pipeline.Spec.Publish
	}
	if o.rules.Registered != nil {
		before = slices.Concat(before, o.rules.Registered(pipeline))
	}
	return before
}

// knownPlaces returns where a pipeline publishes to already.
func (o *owners) knownPlaces(pipeline string) (known []placeKey) {
	for _, to := range o.knownEntries(pipeline) {
		for _, place := range to.Places() {
			known = append(known, placeKey{place.Key, place.Path})
		}
	}
	return known
}

// assignClaimedPlaces assigns the places of a claim to its pipeline, or returns an error if it cannot have them.
func (o *owners) assignClaimedPlaces(c claim) error {
	if to := c.to; to.Git != nil {
		if first, _, _ := strings.Cut(path.Clean(to.Git.Path), "/"); !o.rules.AllowHostFiles && isHostDirectory(first) {
			return &v1alpha1.FieldError{Path: c.at + ".git.path", Message: "must not be below " + first + ", which Git hosts act upon; who runs the daemon can allow it with allow_host_files"}
		}
		reading := o.sources[v1alpha1.BranchKey(to.Git.URL, to.Git.Reference())]
		if to.Git.Adopt && !c.owned && slices.ContainsFunc(reading, func(key string) bool { return key != c.entry.Key }) {
			return &v1alpha1.FieldError{Path: c.at + ".git.adopt", Message: "must not be set for branch " + to.Git.Branch + ", which another pipeline reads its source from"}
		}
	}
	for _, p := range c.places {
		place := o.places[p.Key]
		if place == nil {
			place = &claimedPlace{map[string]string{}, map[string]string{}}
			o.places[p.Key] = place
		}
		// Some systems take Web and web for one directory.
		directory := gitname.Key(p.Path)
		if other := place.overlappingOwner(directory); other != "" && other != c.entry.Key {
			return placeTakenError(c, p, other)
		}
		place.assignPathTo(directory, c.entry.Key)
	}
	return nil
}

// overlappingOwner returns a pipeline whose directory equals, contains, or is inside dir; "" if none does.
func (c *claimedPlace) overlappingOwner(dir string) string {
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

func (c *claimedPlace) assignPathTo(dir, pipeline string) {
	c.byPath[dir] = pipeline
	for at := dir; at != "." && at != "/"; {
		at = path.Dir(at)
		c.above[at] = pipeline
	}
}

// placeTakenError names the owner of a place to those who may know it: pipelines of other namespaces are not named.
func placeTakenError(c claim, p v1alpha1.Place, other string) error {
	who := "another pipeline"
	if v1alpha1.NamespaceOf(c.entry.Key) == v1alpha1.NamespaceOf(other) {
		who = "pipeline " + other
	}
	return p.TakenBy(c.at, who)
}

// hostDirectories are files and directories that Git hosts and their CI act upon when they are pushed.
var hostDirectories = []string{
	".github", ".gitlab", ".gitlab-ci.yml", ".gitea", ".forgejo", ".gogs", ".bitbucket", "bitbucket-pipelines.yml", ".azure-pipelines",
	"azure-pipelines.yml", ".circleci", ".buildkite", ".drone.yml", ".woodpecker", ".woodpecker.yml", ".woodpecker.yaml", ".travis.yml",
	".tekton", ".teamcity", ".cirrus.yml", ".semaphore", "jenkinsfile", ".gitmodules", ".gitattributes",
}

func isHostDirectory(name string) bool {
	return slices.Contains(hostDirectories, gitname.Key(name))
}
