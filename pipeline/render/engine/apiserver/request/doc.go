// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package request makes of the objects of a repository the requests that validating admission would get when they are created: in the
// types of the API, with defaults, and with what the API server's own admission plugins add to pods. The defaults are those of
// pkg/apis/*/v1/defaults.go in k8s.io/kubernetes 1.36; what plugins add is that of plugin/pkg/admission there.
package request
