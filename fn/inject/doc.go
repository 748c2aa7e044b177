// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package inject changes one pod as Istio's webhook would: it renders the templates of an istio.Injector, merges
// them into the pod, and does what the webhook does after that (the user's own proxy settings, cluster names,
// Prometheus, probes, order, status).
//
// A pod is a map with the keys metadata and spec. The merge works on maps with Kubernetes' own patch rules, so
// unknown fields are preserved. Whether to inject a pod at all is not decided here (see package decide), and the
// package neither reads nor changes anything outside the pod.
package inject
