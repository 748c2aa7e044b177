// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package flux holds a program that links Flux' kustomize-controller, for comparison. It is in a module of its own,
// to keep it out of ours. The module is named as one below kustomize-controller, since Go lets no other module
// import its decryptor, which is internal.
package flux
