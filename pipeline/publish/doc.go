// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish writes rendered objects to the place that a cluster reads them from: a directory on a Git branch,
// a proposed branch for GitOps Promoter, an OCI artifact for Flux. It does not write if the content is equal,
// deletes only files that the pipeline itself has written, and rejects branches and files of others.
//
// On a branch, .prerig/README.md explains that Prerig writes the branch, and .prerig/pipelines has one file for
// each pipeline with the files and objects that it owns.
//
// A proposal reports to GitOps Promoter which source commit it was made from: in hydrator.metadata, and in a note
// on the proposed commit. Only the note moves when a source commit has no effect. An artifact can be signed with a
// cosign key; it is signed before any tag points to it.
//
// A pull request (pullrequest.go) is from a head with one commit on top of the newest base. Its trailers name that
// base and list what the commit holds, which distinguishes it from commits of others; the waiting results of each
// pipeline are read from the difference. The host is asked what people did; the body of the pull request has a line
// for what Git cannot record (pullrequest_body.go).
//
// Each kind of place implements Interface (git.go, oci.go, externalartifact.go); Targets opens them. To add one,
// write such a file, add it to targetKinds (target.go), and define its name in v1alpha1.Publish. The changes of
// several pipelines for one branch become one commit (batch.go).
package publish
