// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package chain predicts what an API server's mutating admission makes of a pod, without a server: the plugins that are
// on by default and PodNodeSelector, in the server's order, then MutatingAdmissionPolicies, with the second round that
// the server runs after a policy or a webhook has changed the pod. An input that a step lacks is named and never
// guessed.
//
// Sources: AllOrderedPlugins in pkg/kubeapiserver/options/plugins.go and the packages below plugin/pkg/admission of
// k8s.io/kubernetes 1.36.
package chain
