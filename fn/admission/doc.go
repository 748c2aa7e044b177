// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission reproduces what Kubernetes' API server does to a pod before it calls mutating webhooks: it sets
// the defaults, and applies the LimitRanges of the namespace. A webhook that injects sidecars never sees a pod as
// written in a manifest, so reproducing its output requires seeing the pod in this form.
//
// The rules are those of pkg/apis/core/v1 in k8s.io/kubernetes (defaults.go, zz_generated.defaults.go,
// conversion.go), for pods as maps. Kubernetes' own code cannot be used: its module only builds with replacements,
// which a module that is installed by its path cannot have. A test compares with it, see
// fn/internal/upstream/kubernetes.
package admission
