// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Entry is one pipeline, or one file or document that is not a valid one.
type Entry struct {
	// Key is the pipeline's namespace and name; for what cannot be read so far, the file.
	Key string
	// File that it is in, relative to the directory, or to the root of the repository.
	File string
	// Revision of the repository in which it was first seen as it is now; empty for files of a directory.
	Revision string
	// Pipeline is nil where Err is set.
	Pipeline *v1alpha1.RenderPipeline
	// Digest of the pipeline's specification.
	Digest string
	// Err says what is wrong with it.
	Err error
	// Opaque says that not even the name of a pipeline could be read: any may be in it.
	Opaque bool
	// Tenant are the namespaces of the tenant whose directory its file is in; none without tenants.
	Tenant []string

	problem string // Err without a revision
}

// Source returns the pipeline's source with a local directory made absolute: it is relative to the pipeline's file, which is
// below dir.
func (e Entry) Source(dir string) v1alpha1.Source {
	src := e.Pipeline.Spec.Source
	if src.Dir != nil && !filepath.IsAbs(src.Dir.Path) {
		src.Dir = &v1alpha1.DirSource{Path: filepath.Join(dir, filepath.Dir(filepath.FromSlash(e.File)), src.Dir.Path)}
	}
	return src
}

// Catalog is the pipelines of a directory or a Git repository. It is safe for concurrent use.
type Catalog struct {
	dir  string
	repo *gitRepository
	log  *slog.Logger

	rules  Rules
	rescan time.Duration // rescan, except in tests

	mu      sync.RWMutex
	entries map[string]Entry
	keys    []string
	index   *changeIndex
	state   Status

	listeners []func(changed []string)
}

// Status is where the pipelines are from and how that goes.
type Status struct {
	// Source is the directory, or the repository's URL with reference and path.
	Source string `json:"source"`
	// Revision is the repository's that the pipelines are from.
	Revision string `json:"revision,omitempty"`
	// Checked is when the source was last looked at with success, Changed when that brought a change.
	Checked time.Time `json:"checked,omitzero"`
	Changed time.Time `json:"changed,omitzero"`
	// Error says why the source cannot be read now; the pipelines are still those of Revision.
	Error string `json:"error,omitempty"`
	// Pipelines counts the valid ones, Invalid the rest.
	Pipelines int `json:"pipelines"`
	Invalid   int `json:"invalid,omitempty"`
}

// Option changes a Catalog.
type Option func(*Catalog)

// WithRules sets the rules; the default is their zero value.
func WithRules(r Rules) Option { return func(c *Catalog) { c.rules = r } }

// Open reads the directory. One that does not exist is an error; files that are wrong are not.
func Open(dir string, log *slog.Logger, options ...Option) (*Catalog, error) {
	c := newCatalog(dir, nil, log, options...)
	c.dir = dir
	if _, err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

func newCatalog(source string, repo *gitRepository, log *slog.Logger, options ...Option) *Catalog {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Catalog{repo: repo, log: log, rescan: rescan, entries: map[string]Entry{}, index: newIndex(nil, repo), state: Status{Source: source}}
	for _, option := range options {
		option(c)
	}
	return c
}

// OnChange calls f with the keys that are new, different or gone after each reload that changed anything. It is to be
// called before Watch.
func (c *Catalog) OnChange(f func(changed []string)) { c.listeners = append(c.listeners, f) }

func (c *Catalog) notifyChanged(changed []string) {
	if len(changed) == 0 {
		return
	}
	for _, f := range c.listeners {
		f(changed)
	}
}

// Get returns one entry.
func (c *Catalog) Get(key string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[key]
	return e, ok
}

// All returns every entry, sorted by key.
func (c *Catalog) All() []Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]Entry, 0, len(c.keys))
	for _, key := range c.keys {
		out = append(out, c.entries[key])
	}
	return out
}

// Status says where the pipelines are from and how that goes.
func (c *Catalog) Status() Status {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.state
}

// Reload reads the directory again and gives the keys that changed. For a repository it does nothing.
func (c *Catalog) Reload() ([]string, error) {
	if c.repo != nil {
		return nil, nil
	}
	read, err := readDir(c.dir)
	c.setError(err)
	if err != nil {
		return nil, err
	}
	changed := c.replaceEntries(read, "")
	c.notifyChanged(changed)
	return changed, nil
}

// setError keeps for the status how the last look at the source went.
func (c *Catalog) setError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Error = errorText(err); err == nil {
		c.state.Checked = time.Now()
	}
}

// replaceEntries puts what was read in the place of what is known and gives the keys that changed.
func (c *Catalog) replaceEntries(read []Entry, revision string) []string {
	c.mu.RLock()
	before := c.entries
	c.mu.RUnlock()
	entries := map[string]Entry{}
	for _, e := range c.rules.refuse(read, before) {
		if other, ok := entries[e.Key]; ok {
			e.Err = fmt.Errorf("reading %s: the pipeline %s is in %s already", e.File, e.Key, other.File)
			e.Pipeline, e.Key = nil, e.File+"#"+e.Key
		}
		e.Revision, e.problem = revision, errorText(e.Err)
		if e.Err != nil && revision != "" {
			e.Err = fmt.Errorf("%w (at %s)", e.Err, revision)
		}
		entries[e.Key] = e
	}
	keys := make([]string, 0, len(entries))
	valid := 0
	c.mu.Lock()
	changed := changedKeys(c.entries, entries)
	for key, e := range entries {
		// What is as it was keeps the revision that brought it, so that no commit beside it makes it look new.
		if old, ok := c.entries[key]; ok && old.File == e.File && !entryChanged(old, e) {
			entries[key] = old
		}
		keys = append(keys, key)
		if e.Err == nil {
			valid++
		}
	}
	sort.Strings(keys)
	c.entries, c.keys, c.index = entries, keys, newIndex(entries, c.repo)
	c.state.Revision, c.state.Pipelines, c.state.Invalid = revision, valid, len(keys)-valid
	if len(changed) > 0 {
		c.state.Changed = time.Now()
	}
	c.mu.Unlock()
	for _, key := range changed {
		if e, ok := entries[key]; ok && e.Err != nil {
			c.log.Error("a pipeline is not valid and does not run", "pipeline", key, "file", e.File, "error", e.Err)
		}
	}
	return changed
}

// entryChanged reports whether an entry is not what it was. What is named relative to its file is elsewhere when that has moved.
func entryChanged(old, e Entry) bool {
	return old.Digest != e.Digest || old.problem != e.problem || relativeDir(e.Pipeline) && path.Dir(old.File) != path.Dir(e.File)
}

func changedKeys(before, after map[string]Entry) []string {
	var out []string
	for key, e := range after {
		old, ok := before[key]
		if !ok || entryChanged(old, e) {
			out = append(out, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			out = append(out, key)
		}
	}
	sort.Strings(out)
	return out
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Overlapping calls f for the places of other pipelines that can have files in common with an entry of spec.publish of one.
func (c *Catalog) Overlapping(pipeline string, to v1alpha1.Publish, f func(other string, at v1alpha1.Publish)) {
	for _, e := range c.All() {
		if e.Pipeline == nil || e.Key == pipeline {
			continue
		}
		for _, at := range e.Pipeline.Spec.Publish {
			if to.Overlaps(at) {
				f(e.Key, at)
			}
		}
	}
}

// Successors returns the pipelines that publish to where one that is gone has published: it may have got another name.
func (c *Catalog) Successors(pipeline string, places []v1alpha1.Publish) []string {
	var out []string
	for _, to := range places {
		c.Overlapping(pipeline, to, func(other string, _ v1alpha1.Publish) { out = append(out, other) })
	}
	slices.Sort(out)
	return slices.Compact(out)
}
