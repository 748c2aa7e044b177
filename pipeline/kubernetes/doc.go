// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes supports pipelines that are objects of a cluster: it watches RenderPipelines and
// InjectionPolicies, reads the secrets of their namespaces, and writes what is known about them into their status.
// Otherwise they are handled like pipelines in files: the objects are one more origin of pipeline/daemon/catalog,
// and state that must not be lost is in the queue and not in the cluster.
//
// It uses the informers and work queues of client-go, which Helm's library links anyway. controller-runtime would
// register each Kubernetes kind a second time at every program start, which means for each renderer.
package kubernetes
