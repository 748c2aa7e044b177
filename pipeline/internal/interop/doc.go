// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop plays the parts of Flux, Argo CD, Helm and CI with the files of the examples, as far as that goes without a
// cluster: it has tests only.
package interop
