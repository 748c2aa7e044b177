// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package inject changes one pod as Istio's webhook would: it renders the templates of an istio.Injector, merges them into
// the pod, and does what the webhook does after that (the user's own proxy settings, cluster names, Prometheus, probes,
// order, status).
//
// A pod is a map with the keys metadata and spec. The merge works on maps with Kubernetes' own patch rules, so fields that
// this program does not know stay. Whether a pod is to be injected at all is not decided here (see package decide), and
// nothing outside of the pod is read or changed.
package inject
