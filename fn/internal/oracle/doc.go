// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle compares Prerig with Istio's own injector on workloads that it makes up.
//
// A workload goes two ways. On the first, Kubernetes' own code defaults it as its kind, a controller's pod is made of its
// template and defaulted, Istio's own webhook injects into that pod, and the patched pod is defaulted again: what a
// cluster does. On the other, Prerig injects into the raw workload, and its output goes the first way without the
// webhook. Both ends must be equal, and so must be who refuses.
//
// Istio's and Kubernetes' code run as processes of modules of their own (fn/internal/upstream), so none of it is linked
// here. The installations are renderings of Istio's own chart. Everything follows from a seed: a case is named by its
// installation, its seed and its number, and can be shown alone.
package oracle
