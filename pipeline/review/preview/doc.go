// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package preview says on pull requests to the sources of pipelines what they would change: it renders their heads, compares the results
// with what is published, keeps one comment on each pull request in place, and sets the status of its head.
//
// It writes nothing else. It publishes nothing, neither reads nor takes the locks of pipelines, adds no job to the queue, and changes no
// state of a pipeline. It renders while no pipeline wants to, and makes way for one that does.
//
// An event only says that something has become of a pull request. What that is, and where the head is, is asked of the host, so that
// events may come late, twice and in any order. What an event asks for is stored before the event is forgotten, and a preview that a
// crash has ended begins again.
//
// The head of a fork is anybody's. It is rendered without a single secret, and compared with what the branch renders to in the same way,
// so that nothing is shown of what only a secret can read.
package preview
