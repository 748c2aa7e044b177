// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/prerig/prerig/pipeline/internal/process/disk"
)

// Run removes archives whose time is over, until ctx is done.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(max(k.options.Grace/4, time.Second))
	defer ticker.Stop()
	for {
		k.Tidy(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Tidy searches for archives that are damaged or missing, and removes those that no object has named for as long as
// Grace, as far as this process knows: a restart restarts the period. It removes none if the API server does not
// answer, or does not allow the objects to be read, unless it confirms that their namespace was deleted.
func (k *Keeper) Tidy(ctx context.Context, at time.Time) {
	all, err := k.archives.listArchivedObjects()
	if err != nil {
		k.options.Log.Warn("artifacts could not be listed", "error", err)
	}
	for _, ref := range all {
		if ctx.Err() != nil {
			return
		}
		if err := k.removeObsoleteArchives(ctx, ref, at); err != nil {
			k.options.Log.Warn("older artifacts stay for now", "artifact", ref, "error", err)
		}
	}
}

func (k *Keeper) removeObsoleteArchives(ctx context.Context, ref Ref, at time.Time) error {
	defer k.lockObject(ref)()
	files, err := k.archives.filesOfObject(ref)
	if err != nil {
		return err
	}
	now, err := k.objects.getIfKindExists(ctx, ref)
	if apierrors.IsForbidden(err) && k.objects.isGone(ctx, ref.Namespace) {
		now, err = nil, nil
	}
	if err != nil {
		return err
	}
	current := ""
	if now != nil && now.artifact != nil {
		current = now.artifact.Path // regardless of who owns the object now: Flux fetches what it names
	}
	whole := current == ""
	for _, file := range files {
		if file.path == current {
			whole = k.isWhole(file)
			k.isNamedNow(file.path)
			continue
		}
		if k.isOver(file.path, at) {
			k.removeOldArchive(file.path)
		}
	}
	if now != nil && now.artifact != nil && now.artifact.URL != k.options.URL+"/"+current {
		whole = false // artifacts.url was changed
	}
	k.reportLostArtifact(ctx, ref, now, whole, at)
	return nil
}

// backoff holds when Lost may be called again.
type backoff struct {
	next  time.Time
	delay time.Duration
}

// longestDelay bounds the time between two calls of Lost for an object.
const longestDelay = 6 * time.Hour

// reportLostArtifact calls Lost for an object that is not whole. Its annotation is believed about pipelines of its own
// namespace only.
func (k *Keeper) reportLostArtifact(ctx context.Context, ref Ref, now *object, whole bool, at time.Time) {
	k.mu.Lock()
	last := k.lost[ref]
	if whole {
		delete(k.lost, ref)
	}
	k.mu.Unlock()
	if whole || k.options.Lost == nil || !strings.HasPrefix(now.pipeline, ref.Namespace+"/") || at.Before(last.next) {
		return
	}
	last.delay = min(max(2*last.delay, k.options.Grace), longestDelay)
	last.next = at.Add(last.delay)
	k.mu.Lock()
	k.lost[ref] = last
	k.mu.Unlock()
	k.options.Log.Warn("the file of an artifact is damaged or missing, or its URL differs", "artifact", ref, "pipeline",
		now.pipeline)
	k.options.Lost(ctx, ref, now.pipeline)
}

// maxNamespace bounds the archives of a namespace, in bytes.
const maxNamespace = 1 << 30

// hasRoom returns why an archive cannot be kept.
func (k *Keeper) hasRoom(namespace string, size int64) error {
	if space, err := disk.Of(k.options.Dir); err == nil { // on an error, a write reports more
		if err := space.Problem(); err != nil {
			return fmt.Errorf("keeping the artifact: %w", err)
		}
	}
	all, err := k.archives.listArchivedObjects()
	if err != nil {
		return fmt.Errorf("keeping the artifact: %w", err)
	}
	sum := size
	for _, ref := range all {
		if ref.Namespace != namespace {
			continue
		}
		files, err := k.archives.filesOfObject(ref)
		if err != nil {
			return fmt.Errorf("keeping the artifact: %w", err)
		}
		for _, file := range files {
			sum += file.size
		}
	}
	if sum > maxNamespace {
		return fmt.Errorf("keeping the artifact: the archives of namespace %s would be %d bytes, more than %d; delete ExternalArtifacts there that "+
			"nothing uses: their files go after artifacts.keep", namespace, sum, maxNamespace)
	}
	return nil
}

// isWhole reports whether the content of an archive matches its name. An archive is read again only if its size or
// time has changed.
func (k *Keeper) isWhole(file kept) bool {
	k.mu.Lock()
	known, ok := k.whole[file.path]
	k.mu.Unlock()
	if ok && known == file {
		return true
	}
	if k.archives.verifyArchiveName(file.path) != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.whole[file.path] = file
	return true
}

// isNamedNow restarts the grace period of an archive.
func (k *Keeper) isNamedNow(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.since, name)
}

// isOver records that no object names an archive, and reports whether that has been the case for as long as Grace.
func (k *Keeper) isOver(name string, at time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	first, known := k.since[name]
	if !known {
		k.since[name] = at
		return false
	}
	return at.Sub(first) >= k.options.Grace
}
