// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package flux does what Flux's kustomize-controller 1.9 does to build a Kustomization (kustomize.toolkit.fluxcd.io),
// before and after it runs kustomize: the kustomization that is built, and the variables of its result. It reads the
// files of a tree where Flux's own package, github.com/fluxcd/pkg/kustomize, reads and writes those of a disk.
package flux
