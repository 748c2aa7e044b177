// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog holds the RenderPipelines of directories of YAML files, of directories of Git repositories and of
// clusters, and finds those that an event could affect. It never writes to any of them. All of them form one
// catalog, in which each name and each publishing place has one owner. A part of one directory or repository that
// cannot be read does not stop the others.
//
// Directories and repositories are read in the same way: every file with the extension .yaml, .yml or .json that is
// not hidden, each document by itself. An invalid document is reported with its line and does not affect the
// others; its pipeline does not run until it is fixed, and its published output stays. If a source cannot be read
// at all, such as a commit without the directory or a server that does not answer, the catalog stays as it is.
//
// A directory is watched. A repository is polled at an interval and on events about it, through a mirror, at one
// commit for all processes: the commit is stored where every process sees it before anything is planned with it,
// and a process that is about to do a job first reads the commit stored at that time. Of two processes that poll at
// the same time, the one that asked the server later wins.
//
// The objects of a cluster are read like files of one document each. An object that is being deleted no longer
// counts.
package catalog
