// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle compares Prerig with Istio's own injector on generated workloads.
//
// A workload is processed in two ways. In the first, Kubernetes' own code defaults it as its kind, a controller's
// pod is created from its template and defaulted, Istio's own webhook injects into that pod, and the patched pod is
// defaulted again: the behavior of a cluster. In the second, Prerig injects into the raw workload, and its output
// is processed the first way without the webhook. Both results must be equal, and so must be which of the two
// rejects the workload.
//
// Istio's and Kubernetes' code run as processes of modules of their own (fn/internal/upstream), so this package
// links none of it. The installations are renderings of Istio's own chart. Everything is derived from a seed: a
// case is named by its installation, its seed and its number, and can be shown alone.
package oracle
