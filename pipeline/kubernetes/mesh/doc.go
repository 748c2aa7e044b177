// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package mesh completes policies with from: Cluster with the state of a cluster: its namespaces with their labels
// and their content that matters for pods, and the injector's configuration, the mesh config and the webhooks of a
// revision.
//
// The result is a self-contained InjectionPolicy, as prerig import would write it: the snapshot that a render is
// made from. It is reduced to the namespaces that the render has read, so that it is small and independent of the
// rest of the cluster, and is named by the digest of its text.
//
// A cluster that cannot be read, or that has lost everything it had, is not believed: the last completed policy
// stays, and Completed.Stale holds the reason.
package mesh
