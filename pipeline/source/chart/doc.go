// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart fetches charts from chart repositories, over HTTP as Helm does and from registries: the archive
// that a lock names by its digest, and for writing locks the version that a range resolves to. It opens no archive;
// the renderer does.
//
// The pipeline decides which servers are contacted. A lock, which is part of the source, names the URL of an
// archive, which is requested only if it is on the repository's own server or listed in the repository's index.
package chart
