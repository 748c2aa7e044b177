// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps what builds gave in a directory, so that a change of what follows a build need not build again.
//
// An entry is found by what asks for it and by what that would read: the first part of its key, the slot, is a digest of the
// request, the renderer and the trust that the entry may be shared in; the second a digest of the questions that the build asked of
// its files, with the answers. Who looks for an entry asks these questions of his own files, in their order, until an answer
// differs. So nobody gets a result of files that he could not have read.
//
// Entries are bounded in their sizes together; what was used least recently goes first. Each holds a digest of its key and content,
// which is compared when it is read: what a crash, a broken disk or somebody has changed is removed. Nothing is ever an error:
// where the directory cannot be read or written, nothing is kept.
package cache
