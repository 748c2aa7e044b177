// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package giturl interprets the URLs of Git repositories: which repository a URL names, however it is written, on
// which host, and where that host has its pages and its API. It decides by a list of allowed repositories whether
// one may be fetched. It makes no network requests.
//
// It has two parsers. Parse accepts what users, hosts and submodules write, in every form that Git knows.
// ParseAddress is strict, for input from an untrusted source: it rejects whatever two programs could interpret
// differently.
package giturl
