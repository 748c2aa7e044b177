// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package release renders what Flux's HelmReleases and Argo CD's Applications and ApplicationSets would install, from
// the available objects and files: it asks no cluster and fetches no files.
//
// It follows a controller's behavior wherever that has an effect on the objects: helm-controller 1.6 with
// source-controller 1.9 (which chart, the order of values, names, post-renderers, hooks, definitions of custom
// resources) and Argo CD 3.6 (its flags of helm template, its edits of kustomizations, its generators). Inputs that a controller would read from other places,
// and inputs that differ between renders, are errors about a field of the object.
package release
