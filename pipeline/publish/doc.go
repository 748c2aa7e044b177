// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish puts rendered objects where a cluster takes them from: a directory on a Git branch, a proposed branch
// for GitOps Promoter, an OCI artifact for Flux. It writes nothing where the content is equal, deletes only files that
// the pipeline itself has written, and refuses branches and files of others.
//
// On a branch, .prerig/README.md says that Prerig writes the branch, and .prerig/pipelines has one file for each pipeline
// with the files and objects that it owns.
//
// A proposal tells GitOps Promoter which source commit it was made of: in hydrator.metadata, and in a note on the proposed
// commit, which alone moves when a source commit has no effect. An artifact can be signed with a key of cosign; it is
// signed before any tag points to it.
//
// A pull request (pullrequest.go) is from a head with one commit on top of the newest base. Its trailers say which base that is and what
// the commit holds, so that commits of others are told from it, and what waits of each pipeline is read from the difference. What people
// did is asked of the host; the body of the pull request has a line for what Git cannot tell (pullrequest_body.go).
//
// Each kind of place implements Interface (git.go, oci.go, externalartifact.go); Targets opens them. To add one, write such a file, add it to
// targetKinds (target.go), and say in v1alpha1.Publish what it is called. What several pipelines have for one branch becomes one commit
// (batch.go).
package publish
