// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has pipelines that are objects of a cluster: it knows the RenderPipelines and InjectionPolicies that there are, reads
// the secrets of their namespaces, and writes what is known of them into their status. Everything else is as with pipelines in files: the
// objects are one more origin of pipeline/daemon/catalog, and what must not be lost is in the queue and not in the cluster.
//
// It uses the informers and work queues of client-go, which Helm's library links anyway. controller-runtime would register each kind of
// Kubernetes a second time whenever the program starts, which is for each renderer.
package kubernetes
