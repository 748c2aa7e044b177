// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package release renders what Flux's HelmReleases and Argo CD's Applications with Helm would install, from objects and files that
// are at hand: no cluster is asked, and nothing is fetched.
//
// What a controller would do is followed where it has an effect on the objects: helm-controller 1.6 with source-controller 1.9
// (which chart, the order of values, names, post-renderers, hooks, definitions of custom resources) and Argo CD 3.5 (its flags of
// helm template). What a controller would take from elsewhere, and what is not the same at each render, is an error about a field
// of the object.
package release
