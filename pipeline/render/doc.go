// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package render turns files of a source into objects, applying injection policies on the way. The work is done by
// a renderer: the program prerig-render, built from package engine. This package holds what both sides share, and
// the side of the process that starts renderers.
//
// A render runs in a process of its own, or in one that has rendered for the same trust (Request.Trust): kustomize
// keeps state in globals, and a source is not trusted. A process is reused only if a render left no state in it
// (session.go, engine/again.go), and a render that fails in a reused process is repeated in a new one; so earlier
// renders never change a later one. The process has none of our environment, no credentials and no files except the
// three that it communicates through. It is bounded in time, memory and output, and it sees the source only by
// requesting files from this process over its standard input and output. The record of its requests is what a later
// commit is judged by.
//
// Before it reads any input, the process drops everything that the kernel lets an ordinary process drop
// (engine/sandbox_linux.go): the file system through an empty root and Landlock, and everything beyond that,
// network and other processes included, through a system call filter. Namespaces of its own are set up from
// outside. Each layer holds without the others, and Pool.Isolation reports which are active. A long render lowers its
// CPU priority.
//
// Remote bases are fetched before the render by the process that has the credentials: it walks the kustomizations
// with the same parser as the renderer (package reference) and asks its caller for each repository. The renderer
// sees the files in directories that no listing shows (engine/base.go). A base that was not fetched is rejected
// when it is encountered.
//
// Charts are rendered by package helmchart, which controls those Helm functions whose result does not depend on
// their inputs alone. This includes helmCharts of kustomizations: the entry of kustomize's table that would run the
// helm command is replaced (engine/helmgenerator.go). Charts of repositories are fetched beforehand, as remote
// bases are.
//
// kustomize's plugins are rejected. A kustomization that names Prerig's own function under transformers gets it run
// in place, at the very point at which kustomize would have run it as a plugin (see engine/transform.go).
package render
