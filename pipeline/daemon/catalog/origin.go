// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// Origin is a directory, a Git repository or a cluster that pipelines are read from.
type Origin struct {
	// Name prefixes the names of files in the status and in the metrics. It may be empty for a single origin.
	Name string
	// Dir is a directory, Repository a repository, Objects those of a cluster: one of them.
	Dir        string
	Repository *Repository
	Objects    Objects
	// Tenants are the directories that pipelines must lie in, and what their authors may do. None means those of the rules. Of two
	// origins none may have the same namespace, which the caller checks.
	Tenants []tenant.Tenant
}

// origin is an Origin with what this process has of it.
type origin struct {
	Origin
	catalog *Catalog
	dir     string
	repo    *gitRepository

	// As it was read last, before the rules; guarded by the catalog's merging.
	read     []Entry
	revision string
	known    bool // it was read at all

	reading sync.Mutex              // held while a directory, or the objects of a cluster, are read
	files   parsedFiles             // guarded by reading
	parsed  map[string]parsedObject // guarded by reading

	state  Status // guarded by the catalog's mu
	failed string // the last failure that was logged
}

// Open reads the directory. One that does not exist is an error; files that are wrong are not.
func Open(dir string, log *slog.Logger, options ...Option) (*Catalog, error) {
	return OpenAll(context.Background(), []Origin{{Dir: dir}}, false, log, options...)
}

// OpenAll reads all origins. A worker reads repositories at the commits stored by other processes. A directory that
// does not exist is an error, and so is a repository that cannot be read and has not been read before; with several
// origins, such an error is reported and the others continue as long as one can be read.
func OpenAll(ctx context.Context, from []Origin, worker bool, log *slog.Logger, options ...Option) (*Catalog, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Catalog{log: log, rescan: rescan, Pipelines: Pipelines{entries: map[string]Entry{}}}
	for _, option := range options {
		option(c)
	}
	for _, one := range from {
		o := &origin{Origin: one, catalog: c, dir: one.Dir, state: Status{Name: one.Name, Source: one.Dir}}
		if one.Repository != nil {
			o.repo = &gitRepository{Repository: *one.Repository, turn: make(chan struct{}, 1)}
			o.state.Source = o.repo.String()
		}
		if one.Objects != nil {
			o.state.Source = one.Objects.String()
		}
		c.origins = append(c.origins, o)
	}
	c.index = newIndex(nil, c.origins)
	errs := make([]error, len(c.origins))
	var opening sync.WaitGroup
	for i, o := range c.origins {
		opening.Go(func() { errs[i] = o.readFirstTime(ctx, worker) })
	}
	opening.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	for i, err := range errs {
		if err != nil {
			c.origins[i].reportRead(err)
		}
	}
	return c, nil
}

// readFirstTime reads the origin for the first time.
func (o *origin) readFirstTime(ctx context.Context, worker bool) error {
	switch {
	case o.repo == nil:
		_, err := o.readLocal()
		return err
	case worker:
		return o.joinRepository(ctx)
	}
	return o.openRepository(ctx)
}

// readLocal reads a local origin, a directory or the objects of a cluster, again and returns the keys that changed.
func (o *origin) readLocal() ([]string, error) {
	if o.Objects != nil {
		return o.readObjects()
	}
	return o.readDirectory()
}

// readDirectory reads the directory again and returns the keys that changed.
func (o *origin) readDirectory() ([]string, error) {
	o.reading.Lock()
	defer o.reading.Unlock()
	read, err := o.files.readDir(o.dir)
	o.setError(err)
	if err != nil {
		return nil, err
	}
	return o.catalog.replaceEntries(o, read, ""), nil
}

// label names the origin in messages; "" if it is the only one.
func (o *origin) label() string {
	if o.Name == "" {
		return ""
	}
	return o.Name + ": "
}

// restrictedTenants returns the permissions of the origin's authors, or nil for a single team without restrictions.
func (o *origin) restrictedTenants() []tenant.Tenant {
	if len(o.Tenants) > 0 {
		return o.Tenants
	}
	return o.catalog.rules.Tenants
}

// mayHave reports whether a pipeline of this name can be in the origin.
func (o *origin) mayHave(pipeline string) bool {
	all := o.restrictedTenants()
	return len(all) == 0 || slices.ContainsFunc(all, func(t tenant.Tenant) bool { return t.Owns(v1alpha1.NamespaceOf(pipeline)) })
}

// entriesWithTenants returns copies of what was read, with the tenants that they are of.
func (o *origin) entriesWithTenants() []Entry {
	out := slices.Clone(o.read)
	for i := range out {
		e, file := &out[i], out[i].File
		e.origin = o
		e.applyTenant(o.restrictedTenants())
		if o.Name == "" || o.repo == nil {
			continue
		}
		e.File = o.Name + ":" + file
		if e.Pipeline == nil && strings.HasPrefix(e.Key, file) {
			e.Key = o.Name + ":" + e.Key
		}
	}
	return out
}

// origins are the places that pipelines are read from.
type origins []*origin

// readEntries returns what was read of all origins.
func (all origins) readEntries() (out []Entry) {
	for _, o := range all {
		out = append(out, o.entriesWithTenants()...)
	}
	return out
}

// isUnread reports whether a pipeline of this name can be in an origin that could not be read since this process has started.
func (all origins) isUnread(pipeline string) bool {
	return slices.ContainsFunc(all, func(o *origin) bool { return !o.known && o.mayHave(pipeline) })
}

func (o *origin) status() Status {
	o.catalog.mu.RLock()
	defer o.catalog.mu.RUnlock()
	return o.state
}

// setError keeps for the status how the last look went.
func (o *origin) setError(err error) {
	o.catalog.mu.Lock()
	defer o.catalog.mu.Unlock()
	o.state.Error = errorText(err)
	if err == nil {
		o.state.Checked = time.Now()
	}
}

// reportRead keeps and logs how reading a repository went: a failure once, until it is another one or over.
func (o *origin) reportRead(err error) {
	o.setError(err)
	failed := errorText(err)
	switch {
	case failed == o.failed:
		return
	case err != nil:
		o.catalog.log.Error("the pipelines cannot be read; the known ones stay", "error", err)
	default:
		o.catalog.log.Info("the pipelines can be read again", "source", o.status().Source)
	}
	o.failed = errorText(err)
}

// Statuses returns the status of each directory and repository.
func (c *Catalog) Statuses() []Status {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []Status
	for _, o := range c.origins {
		out = append(out, o.state)
	}
	return out
}

// Status returns the combined status of all directories and repositories: Error contains the problems of all of
// them.
func (c *Catalog) Status() Status {
	all := c.Statuses()
	if len(all) == 1 {
		return all[0]
	}
	out := Status{Source: fmt.Sprintf("%d places", len(all))}
	var problems []string
	for i, s := range all {
		if s.Error != "" {
			problems = append(problems, s.Name+": "+s.Error)
		}
		if i == 0 || s.Checked.Before(out.Checked) {
			out.Checked = s.Checked
		}
		if s.Changed.After(out.Changed) {
			out.Changed = s.Changed
		}
		out.Pipelines, out.Invalid = out.Pipelines+s.Pipelines, out.Invalid+s.Invalid
	}
	out.Error = strings.Join(problems, "; ")
	return out
}

// IsReadable reports whether all directories and repositories can be read now that may have pipelines of some of the namespaces.
func (c *Catalog) IsReadable(some func(namespace string) bool) bool {
	return !slices.ContainsFunc(c.origins, func(o *origin) bool {
		all := o.restrictedTenants()
		owns := func(t tenant.Tenant) bool { return slices.ContainsFunc(t.Namespaces, some) }
		return o.status().Error != "" && (len(all) == 0 || slices.ContainsFunc(all, owns))
	})
}

// StatusOf returns the status of the directory or repository that contains, or would contain, a pipeline of this
// name; false if none can contain it any more.
func (c *Catalog) StatusOf(pipeline string) (Status, bool) {
	for _, o := range c.origins {
		if len(c.origins) == 1 || o.mayHave(pipeline) {
			return o.status(), true
		}
	}
	return Status{}, false
}

// Reload reads the directories and the objects of clusters again and returns the keys that changed. It ignores
// repositories.
func (c *Catalog) Reload() (changed []string, err error) {
	var errs []error
	for _, o := range c.origins {
		if o.repo == nil {
			some, err := o.readLocal()
			changed, errs = append(changed, some...), append(errs, err)
		}
	}
	c.notifyChanged(changed)
	return changed, errors.Join(errs...)
}

// Refresh asks the servers of all repositories for their current commits and reads those that have moved. It
// returns the keys that changed, for the caller to act on: functions of OnChange are not called. After an error a
// repository is unchanged, and the others are still read.
func (c *Catalog) Refresh(ctx context.Context) (changed []string, err error) {
	return refreshAll(ctx, c.origins)
}

// RefreshConcerned does the same for the repositories that changes could touch.
func (c *Catalog) RefreshConcerned(ctx context.Context, changes []event.Change) (changed []string, err error) {
	return refreshAll(ctx, c.originsForChanges(changes))
}

func refreshAll(ctx context.Context, origins []*origin) (changed []string, err error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	var errs []error
	for _, o := range origins {
		if o.repo == nil {
			continue
		}
		group.Go(func() {
			some, err := o.refreshFromServer(ctx)
			mu.Lock()
			defer mu.Unlock()
			changed, errs = append(changed, some...), append(errs, err)
		})
	}
	group.Wait()
	sort.Strings(changed)
	return slices.Compact(changed), errors.Join(errs...)
}

// Follow reads the commits that another process has found of the repositories that a pipeline of this name can be in, where they are not
// those that are known here. Another repository, which may not answer, is not looked at.
func (c *Catalog) Follow(ctx context.Context, pipeline string) error {
	var errs []error
	for _, o := range c.origins {
		if o.repo != nil && (len(c.origins) == 1 || o.mayHave(pipeline)) {
			errs = append(errs, o.followOtherProcess(ctx))
		}
	}
	return errors.Join(errs...)
}

// Wake has Poll look at the repositories now, whatever their intervals.
func (c *Catalog) Wake() {
	for _, o := range c.origins {
		if o.repo != nil {
			o.repo.wake.Store(true)
		}
	}
}

// Poll refreshes each repository once in its interval, sooner after a failure, and follows other processes meanwhile, until ctx is done.
func (c *Catalog) Poll(ctx context.Context) {
	var group sync.WaitGroup
	for _, o := range c.origins {
		if o.repo != nil {
			group.Go(func() { o.pollAtInterval(ctx) })
		}
	}
	group.Wait()
}
