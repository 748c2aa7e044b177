// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package render turns the files of a source into objects, and applies injection policies on the way.
//
// A render runs in a process of its own that is used once: kustomize keeps state in globals that leak from one build into
// the next, and a source is not trusted. The process has no environment, no credentials, no files and, where the system
// lets an ordinary process say so, no network; it is bounded in time, memory and output, and it sees the source only by
// asking this one for files over its standard input and output. What it asked for is the record by which a later commit
// is judged.
//
// kustomize's plugins, remote bases and Helm charts are refused. A kustomization that names Prerig's own function under
// transformers gets it run in place, at the very point where kustomize would have run it as a plugin (see transform.go).
package render
