// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package pairing finds the objects of two ends of a change that are one object in the cluster, whichever build, unit
// or file renders them.
//
// An object is its group, kind, namespace and name; the version of its kind is no part of it. One that leaves a build
// and enters another one moves: nothing is deleted. Builds that have an object in common at one end are builds of
// different clusters, and nothing moves between them. ConfigMaps and Secrets of kustomize's generators, whose names end
// with a hash of their content, are paired by their names without it.
package pairing
