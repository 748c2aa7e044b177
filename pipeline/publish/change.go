// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"errors"
	"reflect"
	"time"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/attestation"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Origin is the source that a result was rendered from.
type Origin struct {
	// URL of the repository, Revision as Flux writes it, Digest the bare commit or digest.
	URL, Revision, Digest string
	// Date of the source's revision. It is the date of commits and artifacts, so that they do not depend on the clock.
	Date time.Time
	// Author, AuthorEmail, Subject and Body are those of the source's commit; empty for other sources.
	Author, AuthorEmail, Subject, Body string
	// Mounted lists the further sources, in their order. If set, Date and the commit details are those of the
	// newest.
	Mounted []v1alpha1.SourceRevision
}

// equal reports whether two origins are the same.
func (o Origin) equal(other Origin) bool { return reflect.DeepEqual(o, other) }

// OriginOf returns the origin that a commit or an artifact records for a snapshot of a source.
func OriginOf(snapshot *source.Snapshot) Origin {
	newest := snapshot
	for _, one := range snapshot.Mounted {
		if one.Snapshot.Date.After(newest.Date) {
			newest = one.Snapshot
		}
	}
	o := Origin{URL: snapshot.URL, Revision: snapshot.Revision, Digest: snapshot.Digest, Date: newest.Date,
		Mounted: snapshot.SourceRevisions()}
	if c := newest.Commit; c != nil {
		o.Author, o.AuthorEmail, o.Subject, o.Body = c.Author, c.AuthorEmail, c.Subject, c.Body
	}
	return o
}

// Change is the result of one pipeline.
type Change struct {
	// Pipeline is the pipeline's key, NAMESPACE/NAME or NAME.
	Pipeline string
	// Cause is that of the job: changes of one cause become one commit.
	Cause string
	// Path of the directory on the branch.
	Path string
	// Files holds the desired files of this pipeline, by paths relative to the directory, as returned by Files.
	Files map[string][]byte
	// Objects are what the files hold, for the gates and the record of the branch.
	Objects []render.Object
	// Origin is where it was rendered from.
	Origin Origin
	// PolicyDigest, Tool and Command are written to trailers: the digest of all policies, the version of Prerig,
	// and the command that reproduces the result.
	PolicyDigest, Tool, Command string
	// Snapshots are digests of policies that were completed from a cluster.
	Snapshots []string
	// Policies are those of the result, for the signed statement about it, see AttestedPolicies.
	Policies []attestation.Resource
	// Subject is a template for the first line of the commit message; "" means the default.
	Subject string
	// Adopt lets the pipeline take over files at its path that no pipeline wrote.
	Adopt bool
	// Gate is asked with the number of objects that are published now and the identities of those that would be
	// deleted. An error keeps the branch as it is. It may be nil.
	Gate func(published int, deleted []string) error
	// Still is called before each unconditional write; an error means that we may no longer write, and aborts the
	// write. It may be nil, and is called often.
	Still func() error
	// Anew allows a deleted branch to be started again, see ErrDeleted.
	Anew bool
	// Predecessors lists removed pipelines whose files this one may take over.
	Predecessors []string
	// Remove removes the pipeline from the branch: its record, and its files except those that another pipeline
	// owns too.
	Remove bool
	// Successors are pipelines that must have published to their paths before this one is removed, with the paths: they
	// may want some of its files.
	Successors map[string]string

	// Note is stored before any part of the change is written, together with the notes of the other changes of its
	// commit; nil if the pipeline's state already records that it may be published.
	Note *Note
	// Findings are the findings shown to a reviewer of the result.
	Findings result.Results
	// Heads are branches of pull requests that results of the pipeline are known to wait on, at whichever path.
	Heads []string

	// Written is the record of what was last published of the pipeline, used to detect later changes by others; nil
	// if unknown.
	Written tree.Record

	// undoes describes the changes of others that this change undoes, or is nil.
	undoes *undone
	// waitReason is the reason why it has to wait for its turn, or "" if it does not.
	waitReason string
	// movesToOtherPullRequest reports whether it moves to another pull request, so that no result of the pipeline may
	// wait in this one.
	movesToOtherPullRequest bool
	// identities represent the objects of a change that is read back from a branch, which holds no objects.
	identities []string
	// statement is the signed statement of a change that is read back, or nil.
	statement []byte
}

// objectIDs returns the identities of what the files hold, sorted.
func (c Change) objectIDs() []string {
	if c.identities != nil {
		return c.identities
	}
	return objectIDs(c.Objects)
}

// Outcome is what became of one Change.
type Outcome struct {
	// Pipeline is the change's key.
	Pipeline string
	// Added, Modified and Deleted are paths on the branch.
	Added, Modified, Deleted []string
	// Ownership reports whether the record of file owners or the statement about the files changed, even if no file did.
	Ownership bool
	// Held is the reason why the change has to wait, or "" if it does not.
	Held string
	// Err is the reason why the change was left out; the others were published regardless.
	Err error
}

// Changed reports whether the branch is different because of it.
func (o Outcome) Changed() bool {
	return o.Ownership || len(o.Added)+len(o.Modified)+len(o.Deleted) > 0
}

// ErrNotOwned is the cause of an error about a file at the pipeline's path that no pipeline wrote.
var ErrNotOwned = errors.New("the pipeline does not own it; move it away, choose another path, or allow it with adopt")

// Paths of Prerig's own files on a branch.
const (
	metaDir    = ".prerig"
	markerFile = metaDir + "/README.md"
	recordDir  = metaDir + "/pipelines"
)

const markerText = `This branch is written by Prerig. Each directory belongs to a pipeline, which replaces and removes the files that it
wrote itself (see pipelines/) and leaves all others alone. Change the source, not this branch.
`
