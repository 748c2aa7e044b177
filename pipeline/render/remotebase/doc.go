// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package remotebase reads the URLs of remote bases as kustomize does, with kustomize's own parser, for
// giturl to decide by a list of allowed repositories which of them may be fetched, and from where.
//
// A base is taken by its commit only. What it is compared with, and what is contacted, comes from the list: a
// kustomization, which is not trusted, chooses among the repositories that are listed, a commit and a directory, and
// never a host, a user or a way to connect.
package remotebase
