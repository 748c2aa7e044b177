// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package request turns the objects of a repository into the requests that validating admission would receive on
// their creation: in the types of the API, with defaults, and with what the API server's own admission plugins add
// to pods. The defaults are those of pkg/apis/*/v1/defaults.go in k8s.io/kubernetes 1.36; the additions are those
// of plugin/pkg/admission in the same repository.
package request
