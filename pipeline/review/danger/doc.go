// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package danger names what a change of an object may break: rights over a node or a cluster, workloads that stop or
// lose their data, protection that is removed, services that get another address, and major versions of images.
//
// It compares the two states of an object, and reports what the change brings, never what both have.
package danger
