// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps the results of builds in a directory, so that a change to a later step does not require a new
// build.
//
// An entry is found by the request for it and by what that request would read: the first part of its key, the slot,
// is a digest of the request, the renderer and the trust that the entry may be shared in; the second is a digest of
// the questions that the build asked of its files, with the answers. A lookup asks these questions of its own
// files, in their order, until an answer differs. So no lookup returns a result of files that its caller could not
// have read.
//
// The total size of the entries is bounded; the least recently used entry is evicted first. Each entry holds a
// digest of its key and content, which is compared when it is read: an entry changed by a crash, a broken disk or a
// user is removed. The cache never returns an error: if the directory cannot be read or written, it keeps no
// entries.
package cache
