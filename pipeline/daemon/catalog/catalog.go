// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"sort"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/source"
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
	// Object is which object of a cluster it is; the zero value for one of a file.
	Object queue.ObjectVersion
	// Err is the reason the entry is invalid.
	Err error
	// Opaque reports whether not even the name of a pipeline could be read: the entry may contain any pipeline.
	Opaque bool
	// Tenant are the namespaces of the tenant whose directory its file is in; none without tenants.
	Tenant []string

	problem string       // Err without a revision
	origin  *origin      // that it was read from
	scope   source.Scope // without a namespace
	// notified is where notifications may be redirected to.
	notified egress.Reach
}

// BindNotifications returns a context for notifications of the pipeline, which are redirected only to where its author
// may have them sent.
func (e Entry) BindNotifications(ctx context.Context) context.Context {
	return egress.WithReach(ctx, e.notified)
}

// Source returns the pipeline's source with a local directory made absolute: it is relative to the pipeline's file, which is
// below dir.
func (e Entry) Source(dir string) v1alpha1.Source {
	return e.resolveSourceDirectory(e.Pipeline.Spec.Source, dir)
}

// Sources returns all sources of the pipeline as Source does, spec.source first.
func (e Entry) Sources(dir string) []v1alpha1.NamedSource {
	all := e.Pipeline.AllSources()
	for i := range all {
		all[i].Source = e.resolveSourceDirectory(all[i].Source, dir)
	}
	return all
}

// Scope returns what the pipeline's sources may make use of.
func (e Entry) Scope() source.Scope {
	scope := e.scope
	scope.Namespace = e.Pipeline.Metadata.Namespace
	return scope
}

func (e Entry) resolveSourceDirectory(src v1alpha1.Source, dir string) v1alpha1.Source {
	if src.Dir != nil && !filepath.IsAbs(src.Dir.Path) {
		src.Dir = &v1alpha1.DirSource{Path: filepath.Join(dir, filepath.Dir(filepath.FromSlash(e.File)), src.Dir.Path)}
	}
	return src
}

// Catalog is the pipelines of directories and Git repositories. It is safe for concurrent use.
type Catalog struct {
	Pipelines
	origins origins
	log     *slog.Logger

	rules  Rules
	rescan time.Duration // rescan, except in tests

	merging sync.Mutex // serializes merges of read entries

	listeners []func(changed []string)
}

// Status describes a source of pipelines and its health.
type Status struct {
	// Name is the name of the directory or repository if several are configured.
	Name string `json:"name,omitempty"`
	// Source is the directory, or the repository's URL with reference and path.
	Source string `json:"source"`
	// Revision is the repository's that the pipelines are from.
	Revision string `json:"revision,omitempty"`
	// Checked is when the source was last looked at with success, Changed when that brought a change.
	Checked time.Time `json:"checked,omitzero"`
	Changed time.Time `json:"changed,omitzero"`
	// Error is the reason the source cannot be read now; the pipelines remain those of Revision.
	Error string `json:"error,omitempty"`
	// Pipelines counts the valid ones, Invalid the rest.
	Pipelines int `json:"pipelines"`
	Invalid   int `json:"invalid,omitempty"`
}

// Option changes a Catalog.
type Option func(*Catalog)

// WithRules sets the rules; the default is their zero value.
func WithRules(r Rules) Option { return func(c *Catalog) { c.rules = r } }

// OnChange registers f to be called with the added, changed and removed keys after each reload that changed
// anything. Call it before Watch.
func (c *Catalog) OnChange(f func(changed []string)) { c.listeners = append(c.listeners, f) }

func (c *Catalog) notifyChanged(changed []string) {
	if len(changed) == 0 {
		return
	}
	for _, f := range c.listeners {
		f(changed)
	}
}

// replaceEntries replaces the known entries of an origin with those just read, and returns all keys that changed.
func (c *Catalog) replaceEntries(from *origin, read []Entry, revision string) []string {
	c.merging.Lock()
	defer c.merging.Unlock()
	from.read, from.revision, from.known = read, revision, true
	c.mu.RLock()
	before := c.entries
	c.mu.RUnlock()
	entries := map[string]Entry{}
	for _, e := range c.rules.rejectBrokenEntries(c.origins.readEntries(), before, c.origins.isUnread) {
		if other, ok := entries[e.Key]; ok {
			e.Err = fmt.Errorf("reading %s: the pipeline %s is in %s already", e.File, e.Key, other.File)
			e.Pipeline, e.Key = nil, e.File+"#"+e.Key
		}
		e.Revision, e.problem = e.origin.revision, errorText(e.Err)
		if e.Err != nil && e.Revision != "" {
			e.Err = fmt.Errorf("%w (at %s)", e.Err, e.Revision)
		}
		entries[e.Key] = e
	}
	changed := c.publishEntries(entries)
	for _, key := range changed {
		if e, ok := entries[key]; ok && e.Err != nil {
			c.log.Error("a pipeline is not valid and does not run", "pipeline", key, "file", e.File, "error", e.Err)
		}
	}
	return changed
}

// publishEntries makes entries the current ones and returns the keys that changed.
func (c *Catalog) publishEntries(entries map[string]Entry) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := changedKeys(c.entries, entries)
	keys := make([]string, 0, len(entries))
	for _, o := range c.origins {
		o.state.Revision, o.state.Pipelines, o.state.Invalid = o.revision, 0, 0
	}
	for key, e := range entries {
		// What is as it was keeps the revision that brought it, so that no commit beside it makes it look new.
		if old, ok := c.entries[key]; ok && old.File == e.File && old.origin == e.origin && !entryChanged(old, e) {
			entries[key] = old
		}
		keys = append(keys, key)
		if e.Err == nil {
			e.origin.state.Pipelines++
		} else {
			e.origin.state.Invalid++
		}
	}
	sort.Strings(keys)
	now := time.Now()
	for _, key := range changed {
		for _, e := range []Entry{c.entries[key], entries[key]} {
			if e.origin != nil {
				e.origin.state.Changed = now
			}
		}
	}
	c.entries, c.keys, c.index = entries, keys, newIndex(entries, c.origins)
	return changed
}

// entryChanged reports whether an entry is not what it was. What is named relative to its file is elsewhere when that has moved.
func entryChanged(old, e Entry) bool {
	return old.Digest != e.Digest || old.Object != e.Object || old.problem != e.problem || relativeDir(e.Pipeline) != "" && path.Dir(old.File) != path.Dir(e.File)
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
