// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package git reads single commits from Git repositories and adds commits to their branches, without a work tree
// and without the git command: credentials stay in this process and never become an argument, an environment
// variable or a line of configuration.
//
// A Mirror is one long-lived bare repository for each URL. A fetch requests exactly one commit at depth one, sends
// the server the commits that the mirror already has, and leaves out files that no render may read, if the server
// supports that. Packs are bounded before their objects are inflated. A push sends the new objects and the expected
// value of the branch; if the branch has another value, the push returns ErrMoved and leaves it unchanged.
package git
