// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package preview reports on pull requests to the sources of pipelines what they would change: it renders their
// heads, compares the results with what is published, maintains one comment on each pull request, and sets the
// status of its head.
//
// It has no other effects. It does not publish, neither reads nor acquires the locks of pipelines, adds no job to
// the queue, and changes no state of a pipeline. It renders while no pipeline wants to, and yields to one that
// does.
//
// An event only reports that a pull request has changed. How it changed, and where the head is, is requested from
// the host, so that events may arrive late, twice and in any order. What an event requests is stored before the
// event is dropped, and a preview that a crash has ended begins again.
//
// The head of a fork is untrusted. It is rendered without any secret, and compared with what the branch renders to
// in the same way, so that content readable only with a secret is never shown.
package preview
