// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package request turns the objects of a repository into the requests that admission would receive on their creation:
// in the types of the API, with the defaults of pkg/apis/*/v1/defaults.go in k8s.io/kubernetes 1.36. Package chain
// adds what mutating admission makes of pods.
package request
