// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
)

// ErrNoArtifacts is the reason why a process can neither publish an ExternalArtifact nor report what is published.
var ErrNoArtifacts = errors.New("this process serves no artifacts: prerig serve does with the keys artifacts.listen and artifacts.url of its configuration")

// externalTarget is an ExternalArtifact of a cluster, and the archive of it that the daemon serves.
type externalTarget struct {
	lock     Lock
	refresh  func(ctx context.Context) error // may be nil
	watchdog *watchdog.Watchdog
	keeper   *externalartifact.Keeper
	ref      externalartifact.Ref
}

func (t *Targets) openExternalArtifact(_ context.Context, _ string, entry v1alpha1.Publish) (Interface, error) {
	if t.Artifacts == nil {
		return nil, ErrNoArtifacts
	}
	to := entry.ExternalArtifact
	return &externalTarget{
		lock: t.batcher.lock, refresh: t.Refresh, watchdog: t.watchdog, keeper: t.Artifacts,
		ref: externalartifact.Ref{Namespace: to.Namespace, Name: to.Name},
	}, nil
}

// Key implements Interface.
func (e *externalTarget) Key() string { return "externalartifact/" + e.ref.String() }

// Publish implements Interface.
func (e *externalTarget) Publish(ctx context.Context, c Change) (Receipt, error) {
	return whileLocked(ctx, e.lock, e.watchdog, e.Key(), c.Pipeline, func(ctx context.Context) (Receipt, error) {
		packed, err := packFilesDeterministically(c.Files)
		if err != nil {
			return Receipt{}, err
		}
		wanted := externalartifact.Wanted{
			Pipeline: c.Pipeline, Predecessors: c.Predecessors, Archive: packed, Objects: objectIDs(c.Objects),
			SourceURL: c.Origin.URL, SourceRevision: c.Origin.Revision,
			Gate: func(now externalartifact.Current) error {
				gate := refreshBeforeGate(ctx, e.refresh, c.Gate)
				if gate == nil {
					return nil
				}
				published, err := objectsOf(e.ref, now)
				if err != nil {
					return err
				}
				return gate(len(published), deletedObjects(published, objectIDs(c.Objects)))
			},
		}
		before, digest, err := e.keeper.Put(ctx, e.ref, wanted)
		if err != nil {
			return Receipt{}, asNotOwnedError(err)
		}
		receipt := Receipt{Revision: digest, Changed: before.Digest != digest, Files: c.Files}
		if receipt.Changed {
			old, err := filesOf(e.ref, before)
			receipt.Problem = err
			if err == nil {
				receipt.compareWithFiles(old)
			}
		}
		return receipt, nil
	})
}

// asNotOwnedError makes an object of another owner be rejected in the same way as a file of another owner.
func asNotOwnedError(err error) error {
	if errors.Is(err, externalartifact.ErrNotOwned) {
		return notOwnedError{err}
	}
	return err
}

type notOwnedError struct{ error }

// Is has it be known as ErrNotOwned, without its text.
func (notOwnedError) Is(target error) bool { return target == ErrNotOwned }

// Unwrap returns what it is about.
func (e notOwnedError) Unwrap() error { return e.error }

// objectsOf returns the identities of the objects in an artifact. It returns an error if they cannot be determined:
// treating them as empty would open the gates that check deletions.
func objectsOf(ref externalartifact.Ref, now externalartifact.Current) ([]string, error) {
	if now.Objects != nil {
		return now.Objects, nil
	}
	files, err := filesOf(ref, now)
	if err != nil {
		return nil, err
	}
	return objectIdentities(files), nil
}

// filesOf returns the files of an artifact.
func filesOf(ref externalartifact.Ref, now externalartifact.Current) (map[string][]byte, error) {
	var err error
	if now.Digest != "" && now.Archive == nil {
		err = errors.New("its file in the state directory is damaged or missing")
	}
	var files map[string][]byte
	if err == nil {
		files, err = readOwnArchive(now.Archive)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what ExternalArtifact %s holds: %w; bring the file %s back, or delete the object: the next run creates both, "+
			"as if nothing had been published", ref, err, now.Path)
	}
	return files, nil
}

// readOwnArchive reads the files of an archive of ours. A nil archive has no files.
func readOwnArchive(packed []byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	if packed == nil {
		return files, nil
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading an archive: %w", err)
	}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err == nil && header.Typeflag == tar.TypeReg {
			files[header.Name], err = io.ReadAll(r)
		}
		if err != nil {
			return nil, fmt.Errorf("reading an archive: %w", err)
		}
	}
}

// Current implements Interface.
func (e *externalTarget) Current(ctx context.Context, pipeline string, _ map[string][]byte) (Holding, error) {
	now, err := e.keeper.Find(ctx, e.ref, pipeline)
	if err != nil {
		return Holding{}, err
	}
	if now.Refused != nil {
		return Holding{Refused: now.Refused}, nil
	}
	files, err := filesOf(e.ref, now)
	if err != nil {
		return Holding{}, err
	}
	objects := now.Objects
	if objects == nil {
		objects = objectIdentities(files)
	}
	return Holding{Files: files, Objects: objects}, nil
}

// Drift implements Interface.
func (e *externalTarget) Drift(ctx context.Context, written Written) (string, error) {
	if written.Revision == "" {
		return "", nil
	}
	return e.keeper.Drift(ctx, e.ref, written.Revision)
}

// Settle implements Interface: no result ever waits here.
func (e *externalTarget) Settle(context.Context, string, Written) (*v1alpha1.PullRequestStatus, error) {
	return nil, nil
}

// Remove implements Interface.
func (e *externalTarget) Remove(ctx context.Context, c Change) (Receipt, error) {
	return whileLocked(ctx, e.lock, e.watchdog, e.Key(), c.Pipeline, func(ctx context.Context) (Receipt, error) {
		before, found, err := e.keeper.Remove(ctx, e.ref, c.Pipeline)
		if err != nil || !found {
			return Receipt{}, err
		}
		old, err := filesOf(e.ref, before)
		receipt := Receipt{Changed: true, Problem: err}
		if err == nil {
			receipt.compareWithFiles(old)
		}
		return receipt, nil
	})
}
