// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop simulates Flux, Argo CD, Helm and CI with the files of the examples, as far as that is possible
// without a cluster: it contains tests only.
package interop
