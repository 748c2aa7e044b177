// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package flux holds a program that links Flux' kustomize-controller, to compare with. It is in a module of its own, so that none of it
// gets into ours. The module is named as one below kustomize-controller, as Go lets nobody else import its decryptor, which is internal.
package flux
