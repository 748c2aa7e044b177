// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package mesh completes policies that say from: Cluster with what a cluster has: its namespaces with their labels and with what in
// them counts for pods, and the injector's configuration, the mesh config and the webhooks of a revision.
//
// What comes out is an InjectionPolicy that says all by itself, as prerig import would write it: the snapshot that a render is made of.
// It is cut down to the namespaces that the render has looked at, so that it is small and the same whatever else the cluster has, and is
// named by the digest of its text.
//
// A cluster that cannot be read, or that has nothing any more of what it had, is not believed: the last completed policy stays, and
// Completed.Stale says why.
package mesh
