// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// maxOlder is how many archives of an object are kept beside the current one, however young they are.
const maxOlder = 5

// maxObjects bounds the identities that an artifact's metadata holds, in bytes.
const maxObjects = 128 << 10

// Options of a Keeper.
type Options struct {
	// Dir is where archives are kept.
	Dir string
	// URL is where the cluster reaches what the Keeper serves.
	URL string
	// Grace is how long an archive is kept after the last object stopped naming it: a client may be about to fetch
	// it.
	Grace time.Duration
	// Client is the way to the cluster.
	Client dynamic.Interface
	// Lost is called with an object whose archive is damaged or missing, or whose URL is not that of this Keeper,
	// and its pipeline of the same namespace: when this is detected, and with a growing delay while it persists. It
	// may be nil.
	Lost func(ctx context.Context, ref Ref, pipeline string)
	// Log receives what could not be tidied up.
	Log *slog.Logger
}

// Keeper keeps archives and the objects that name them. It is safe for concurrent use; no other process may use its
// directory.
type Keeper struct {
	options  Options
	archives archives
	objects  objects

	mu    sync.Mutex
	locks map[Ref]*sync.Mutex
	since map[string]time.Time // when each archive was first seen unreferenced
	whole map[string]kept      // archives that were read and found to be whole
	lost  map[Ref]backoff      // objects that Lost was called for
}

// Open returns a keeper.
func Open(o Options) (*Keeper, error) {
	all, err := openArchives(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.URL = strings.TrimRight(o.URL, "/")
	return &Keeper{options: o, archives: all, objects: objects{o.Client}, locks: map[Ref]*sync.Mutex{},
		since: map[string]time.Time{}, whole: map[string]kept{}, lost: map[Ref]backoff{}}, nil
}

// Close lets go of the directory.
func (k *Keeper) Close() error { return k.archives.root.Close() }

// lockObject has one goroutine at a time work at an object and its archives.
func (k *Keeper) lockObject(ref Ref) (unlock func()) {
	k.mu.Lock()
	one := k.locks[ref]
	if one == nil {
		one = &sync.Mutex{}
		k.locks[ref] = one
	}
	k.mu.Unlock()
	one.Lock()
	return one.Unlock
}

// Current is what an object names now.
type Current struct {
	// Digest is the digest of the archive, or "" if none exists. Archive is its content, nil if it is no longer
	// intact. Path is its file.
	Digest  string
	Path    string
	Archive []byte
	// Objects are the identities of what it holds, nil where that is not known without the archive.
	Objects []string
	// Refused is the reason why writing is not allowed, or nil if it is.
	Refused error
}

// Find returns what the object of a pipeline names now.
func (k *Keeper) Find(ctx context.Context, ref Ref, pipeline string) (Current, error) {
	now, err := k.objects.get(ctx, ref)
	if err != nil || now == nil {
		return Current{}, err
	}
	if now.pipeline != pipeline {
		return Current{Refused: explainServerError("writing", ref, ErrNotOwned)}, nil
	}
	return k.currentArchiveOf(ref, now), nil
}

// currentArchiveOf reads the archive that an object names. An archive of another object is ignored, whatever the status
// contains.
func (k *Keeper) currentArchiveOf(ref Ref, now *object) (c Current) {
	if now == nil || now.artifact == nil {
		return c
	}
	c.Digest = now.artifact.Digest
	c.Path = pathFor(ref, c.Digest)
	if list := now.artifact.Metadata[metadataObjects]; list != "" {
		c.Objects = strings.Split(list, "\n")
	}
	if now.artifact.Path != c.Path {
		return c
	}
	if content, err := k.archives.readVerifiedArchive(c.Path); err == nil {
		c.Archive = content
	}
	return c
}

// Wanted is what an object is to name.
type Wanted struct {
	// Pipeline it belongs to; Predecessors are those that it may be taken over from.
	Pipeline     string
	Predecessors []string
	// Archive is a tar.gz.
	Archive []byte
	// Objects are the identities of what the archive holds, SourceURL and SourceRevision where that is from.
	Objects                   []string
	SourceURL, SourceRevision string
	// Gate is called with the current content before any change is made. It may be nil.
	Gate func(now Current) error
}

// Put points an object to an archive. It returns what the object named before. It is idempotent, and restores lost
// archives.
func (k *Keeper) Put(ctx context.Context, ref Ref, w Wanted) (before Current, digest string, err error) {
	defer k.lockObject(ref)()
	mine := func(pipeline string) bool { return pipeline == w.Pipeline || slices.Contains(w.Predecessors, pipeline) }
	seen, err := k.objects.get(ctx, ref)
	if err != nil {
		return before, "", err
	}
	if seen != nil && !mine(seen.pipeline) {
		return before, "", explainServerError("writing", ref, ErrNotOwned)
	}
	before = k.currentArchiveOf(ref, seen)
	name, digest := pathOf(ref, w.Archive)
	want := k.describeArtifact(name, digest, w)
	if err := k.consultGate(before, seen, want, w); err != nil {
		return before, "", err
	}
	if before.Digest != digest {
		if err := k.hasRoom(ref.Namespace, int64(len(w.Archive))); err != nil {
			return before, "", err
		}
	}
	if err := k.archives.writeArchiveAtomically(name, w.Archive); err != nil {
		return before, "", err
	}
	k.isNamedNow(name)
	now, err := k.objects.getOrAdoptObject(ctx, ref, w.Pipeline, mine)
	if err != nil {
		return before, "", err
	}
	if !isNamed(now, want) {
		if err := k.objects.pointToArchive(ctx, ref, now, want); err != nil {
			return before, "", err
		}
	}
	if before.Archive != nil && before.Path != name {
		k.archives.markAsNewest(before.Path) // Flux may be about to take it: its time begins now
		k.isNamedNow(before.Path)
	}
	k.forgetOldest(ref, name)
	return before, digest, nil
}

// consultGate consults the gate before any write. Equal content deletes no objects, but whether it may be written can
// have changed.
func (k *Keeper) consultGate(before Current, seen *object, want meta.Artifact, w Wanted) error {
	if w.Gate == nil {
		return nil
	}
	if before.Digest == want.Digest {
		if before.Archive != nil && seen.pipeline == w.Pipeline && isNamed(seen, want) {
			return nil // no write follows
		}
		before.Archive, before.Objects = w.Archive, w.Objects
	}
	return w.Gate(before)
}

// describeArtifact returns the description of an archive in an object. The revision is derived from the content, as
// Flux fetches a source again when its revision differs: what Prerig adds can change without the source.
func (k *Keeper) describeArtifact(name, digest string, w Wanted) meta.Artifact {
	size := int64(len(w.Archive))
	a := meta.Artifact{
		Path: name, URL: k.options.URL + "/" + name, Digest: digest, Revision: revisionOf(digest), Size: &size,
		LastUpdateTime: metav1.NewTime(time.Now().UTC().Truncate(time.Second)), Metadata: map[string]string{},
	}
	if list := strings.Join(w.Objects, "\n"); list != "" && len(list) <= maxObjects {
		a.Metadata[metadataObjects] = list
	}
	if w.SourceURL != "" {
		a.Metadata[metadataSource] = w.SourceURL
	}
	if w.SourceRevision != "" {
		a.Metadata[metadataRevision] = w.SourceRevision
	}
	return a
}

func revisionOf(digest string) string { return "latest@" + digest }

// isNamed reports whether an object describes an artifact as it should. The source's revision may be an older one
// of equal content.
func isNamed(now *object, want meta.Artifact) bool {
	is := now.artifact
	return is != nil && now.isReady() && is.Digest == want.Digest && is.Path == want.Path && is.URL == want.URL &&
		is.Revision == want.Revision
}

// forgetOldest removes archives of an object beyond maxOlder.
func (k *Keeper) forgetOldest(ref Ref, current string) {
	all, err := k.archives.filesOfObject(ref)
	if err != nil {
		k.options.Log.Warn("older artifacts could not be listed", "artifact", ref, "error", err)
	}
	older := 0
	for _, one := range all {
		if one.path == current {
			continue
		}
		if older++; older > maxOlder {
			k.removeOldArchive(one.path)
		}
	}
}

func (k *Keeper) removeOldArchive(name string) {
	if err := k.archives.removeArchiveFile(name); err != nil {
		k.options.Log.Warn("an older artifact could not be removed", "path", name, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.since, name)
	delete(k.whole, name)
}

// Drift describes the differences from what was published with a digest, or returns "" without any.
func (k *Keeper) Drift(ctx context.Context, ref Ref, digest string) (string, error) {
	now, err := k.objects.get(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case now == nil:
		return fmt.Sprintf("the ExternalArtifact %s was deleted", ref), nil
	case now.pipeline == "":
		return fmt.Sprintf("the ExternalArtifact %s does not say any more that it belongs to Prerig: its label or annotation was changed", ref), nil
	case now.artifact == nil:
		return fmt.Sprintf("the ExternalArtifact %s names no artifact any more", ref), nil
	case now.artifact.Digest != digest:
		return fmt.Sprintf("the ExternalArtifact %s was changed to %s", ref, now.artifact.Digest), nil
	case now.artifact.Path != pathFor(ref, digest) || now.artifact.Revision != revisionOf(digest):
		return fmt.Sprintf("the ExternalArtifact %s was changed: its path is %s and its revision %s", ref,
			now.artifact.Path, now.artifact.Revision), nil
	case now.artifact.URL != k.options.URL+"/"+now.artifact.Path:
		return fmt.Sprintf("the ExternalArtifact %s names the address %s, which is not that of this daemon", ref,
			now.artifact.URL), nil
	case !now.isReady():
		return fmt.Sprintf("the ExternalArtifact %s is not ready any more", ref), nil
	}
	err = k.archives.verifyArchiveName(now.artifact.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the file of the ExternalArtifact %s is missing", ref), nil
	case errors.Is(err, errDamaged):
		return fmt.Sprintf("the file of the ExternalArtifact %s is damaged", ref), nil
	default:
		return "", err
	}
}

// Remove deletes the object of a pipeline, and returns what it named and whether it existed. Its archives are
// removed after the grace period.
func (k *Keeper) Remove(ctx context.Context, ref Ref, pipeline string) (before Current, found bool, err error) {
	defer k.lockObject(ref)()
	now, err := k.objects.getIfKindExists(ctx, ref)
	if err != nil || now == nil {
		return before, false, err
	}
	if now.pipeline != pipeline {
		return before, false, nil // another has taken it over
	}
	return k.currentArchiveOf(ref, now), true, k.objects.deleteUnchangedObject(ctx, ref, now)
}
