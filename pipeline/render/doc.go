// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package render has files of a source turned into objects, and injection policies applied on the way, by a renderer: the program
// prerig-render, which package engine is. This package has what both sides know, and the side of the process that starts renderers.
//
// A render runs in a process of its own, or in one that has rendered for the same trust (Request.Trust): kustomize keeps state in
// globals, and a source is not trusted. A process is used again only where a render has left nothing in it (session.go, engine/again.go),
// and what fails in it then is rendered in a new one; so no render is another one for those before it. The process has
// nothing of our environment, no credentials and no files but the three that it talks through; it is bounded in time, memory and
// output, and it sees the source only by asking this one for files over its standard input and output. What it asked for is the record by which a later commit is judged.
//
// Before it reads anything it takes from itself what the kernel lets an ordinary process take (engine/sandbox_linux.go): the file system
// by an empty root and by Landlock, and everything else, network and other processes included, by a filter of system calls.
// Namespaces of its own are given to it from outside. Each layer holds without the others, and Pool.Isolation says which
// there are. A render that takes long steps back from the processor.
//
// Remote bases are fetched before the render, by the process that has the credentials: it goes through the kustomizations
// with the same reading of them as the renderer (package reference), asks whoever called it for each repository, and the renderer
// sees the files in directories that no list shows (engine/base.go). What was not fetched is refused where it is met.
//
// Charts are rendered by package helmchart, which has Helm's functions that are none of their inputs under control. That goes for
// helmCharts of kustomizations too: the entry of kustomize's table that would run the helm command is replaced
// (engine/helmgenerator.go). Charts of repositories are fetched beforehand, as remote bases are.
//
// kustomize's plugins are refused. A kustomization that names Prerig's own function under
// transformers gets it run in place, at the very point where kustomize would have run it as a plugin (see engine/transform.go).
package render
