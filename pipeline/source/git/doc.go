// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package git reads single commits out of Git repositories and adds commits to their branches, without a work tree and
// without the git command: credentials stay in this process and never become an argument, an environment variable or a
// line of configuration.
//
// A Mirror is one long-lived bare repository for each URL. A fetch asks for exactly one commit at depth one, tells the
// server which commits are already there, and leaves out files that no render may read, where the server can do that.
// Packs are bounded before their objects are inflated. A push sends the new objects and the value that the branch is
// expected to have; when it has another one, ErrMoved is returned and nothing has changed.
package git
