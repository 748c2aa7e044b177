// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package giturl knows what the URL of a Git repository says: which repository it is, however it is written, on which host,
// and where that host has its pages and its API. It decides by a list of allowed repositories whether one may be fetched.
// It contacts nothing.
//
// There are two readers. Parse takes what users, hosts and submodules write, in every form that Git knows. ParseAddress is
// narrow, for what comes from a source that is not trusted: it refuses whatever two programs could read differently.
package giturl
