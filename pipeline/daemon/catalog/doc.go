// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog holds the RenderPipelines of directories of YAML files, of directories of Git repositories and of clusters, and
// says which of them an event could touch. It writes nothing to any. All that is read is one catalog, in which names and the
// places that are published to have one owner; what cannot be read of one directory or repository leaves the others going.
//
// Both are read in the same way: every file with the ending .yaml, .yml or .json that is not hidden, every document by
// itself. A document that is wrong is told about, with its line, and stops no other; the pipeline that it was does not run
// until it is mended, and what it has published stays. What cannot be read at all, such as a commit without the directory
// or a server that does not answer, leaves the catalog as it is.
//
// A directory is watched. A repository is looked at in an interval and when an event is about it, out of a mirror, at one
// commit for all processes: the commit is stored where every process sees it before anything is planned with it, and a
// process that is about to do a job first reads the commit that is stored then. Of two processes that look at the same
// time, the one that asked the server later wins.
//
// The objects of a cluster are read as files of one document each would be. An object that somebody has deleted is none any more.
package catalog
