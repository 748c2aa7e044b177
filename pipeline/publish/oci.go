// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// ociTarget is an artifact in a registry.
type ociTarget struct {
	lock     Lock
	refresh  func(ctx context.Context) error // may be nil
	watchdog *watchdog.Watchdog
	to       *v1alpha1.OCIPublish
	artifact Artifact
}

func (t *Targets) openOCI(ctx context.Context, namespace string, entry v1alpha1.Publish) (Interface, error) {
	to := entry.OCI
	keys, err := secret.Read(ctx, t.secrets, namespace, to.SecretRef, secret.AtRegistry(to.URL, to.Insecure))
	if err != nil {
		return nil, err
	}
	registry, err := t.repositories.Registry(to.URL, keys, to.Insecure)
	if err != nil {
		return nil, err
	}
	o := &ociTarget{lock: t.batcher.lock, refresh: t.Refresh, watchdog: t.watchdog, to: to,
		artifact: Artifact{Registry: registry, Tags: to.Tags}}
	if o.artifact.Signer, err = t.artifactSigner(ctx, namespace, to.Signing); err != nil {
		return nil, err
	}
	if o.artifact.Attester, err = t.artifactSigner(ctx, namespace, to.Attestation); err != nil {
		return nil, err
	}
	return o, nil
}

// artifactSigner returns the signer with the key that an entry names, or nil if it names none or nothing is written.
func (t *Targets) artifactSigner(ctx context.Context, namespace string, signing *v1alpha1.ArtifactSigning) (*ArtifactSigner, error) {
	if signing == nil || t.readOnly {
		return nil, nil
	}
	key, err := secret.Read(ctx, t.secrets, namespace, &signing.SecretRef, secret.Purpose{})
	if err != nil {
		return nil, err
	}
	return NewArtifactSigner(key)
}

// Key implements Interface.
func (o *ociTarget) Key() string { return "artifact/" + o.to.URL }

// Publish implements Interface.
func (o *ociTarget) Publish(ctx context.Context, c Change) (Receipt, error) {
	return whileLocked(ctx, o.lock, o.watchdog, o.Key(), c.Pipeline, func(ctx context.Context) (Receipt, error) {
		c.Gate = refreshBeforeGate(ctx, o.refresh, c.Gate)
		result, err := o.artifact.Publish(ctx, c)
		if err != nil {
			return Receipt{}, err
		}
		receipt := Receipt{Revision: result.Digest, Changed: result.Changed}
		if result.Changed && result.Before != result.Digest { // otherwise only tags were set
			o.compareArtifact(ctx, &receipt, result.Before, c.Files)
		}
		return receipt, nil
	})
}

// whileLocked does something for a pipeline while no other process does at the place of a key, and leaves it behind
// where it hangs.
func whileLocked(ctx context.Context, lock Lock, w *watchdog.Watchdog, key, pipeline string, do func(context.Context) (Receipt, error)) (Receipt, error) {
	locking, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	unlock, err := lock(locking, key)
	if err != nil {
		return Receipt{}, err
	}
	defer unlock()
	return watchdog.Run(ctx, w, watchdog.Step{Name: watchdog.StepPublish, Subject: key + " " + pipeline, Limit: publishTimeout}, do)
}

// refreshBeforeGate makes a gate consider everything reported until it is called: downloading what is published may
// take minutes before that.
func refreshBeforeGate(ctx context.Context, refresh func(context.Context) error, gate func(int, []string) error) func(int, []string) error {
	if refresh == nil || gate == nil {
		return gate
	}
	return func(published int, deleted []string) error {
		if err := refresh(ctx); err != nil {
			return err
		}
		return gate(published, deleted)
	}
}

// compareArtifact computes the differences from the previous artifact.
func (o *ociTarget) compareArtifact(ctx context.Context, receipt *Receipt, before string, files map[string][]byte) {
	receipt.Files = files
	if before == "" {
		receipt.compareWithFiles(nil)
		return
	}
	view, err := pullArtifact(ctx, o.artifact.Registry, oci.Ref{Digest: before})
	if err == nil {
		receipt.Old = func(name string) []byte {
			content, err := view.ReadOnce(name)
			if err != nil {
				return nil
			}
			return content
		}
		err = receipt.computeFileDifferences(func(visit func(name string, content []byte)) error { return visitArtifact(view, visit) })
	}
	if err != nil {
		receipt.Files, receipt.Problem = nil, fmt.Errorf("reading the artifact that was there before: %w", err)
	}
}

// compareWithFiles computes the differences between Files and previous files.
func (r *Receipt) compareWithFiles(old map[string][]byte) {
	r.Old = func(name string) []byte { return old[name] }
	_ = r.computeFileDifferences(func(visit func(name string, content []byte)) error {
		for name, content := range old {
			visit(name, content)
		}
		return nil
	})
}

// computeFileDifferences computes the differences between Files and the previous files, each of which is visited.
func (r *Receipt) computeFileDifferences(eachOld func(visit func(name string, content []byte)) error) error {
	had := map[string]bool{}
	err := eachOld(func(name string, content []byte) {
		had[name] = true
		now, stays := r.Files[name]
		switch {
		case !stays:
			r.Outcome.Deleted = append(r.Outcome.Deleted, name)
		case !bytes.Equal(content, now):
			r.Outcome.Modified = append(r.Outcome.Modified, name)
		}
	})
	for name := range r.Files {
		if !had[name] {
			r.Outcome.Added = append(r.Outcome.Added, name)
		}
	}
	for _, names := range [][]string{r.Outcome.Added, r.Outcome.Modified, r.Outcome.Deleted} {
		slices.Sort(names)
	}
	return err
}

// Current implements Interface: it is what the first tag holds.
func (o *ociTarget) Current(ctx context.Context, _ string, _ map[string][]byte) (Holding, error) {
	tag := "latest"
	if len(o.to.Tags) > 0 {
		tag = o.to.Tags[0]
	}
	return PublishedArtifact(ctx, o.artifact.Registry, tag)
}

// Remove implements Interface. Others may have pulled an artifact by its digest, so it stays.
func (o *ociTarget) Remove(context.Context, Change) (Receipt, error) {
	return Receipt{}, errors.New("an artifact is not removed from its registry")
}

// Settle implements Interface: no result ever waits here.
func (o *ociTarget) Settle(context.Context, string, Written) (*v1alpha1.PullRequestStatus, error) {
	return nil, nil
}
