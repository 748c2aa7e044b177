// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package helmchart renders Helm charts as functions of their files and of the pipeline's settings.
//
// Loading, values, templates and their order come from Helm's own packages (helm.sh/helm/v4), so that the objects
// are those of helm template. Behavior that is not a function of the inputs differs:
//
//   - Capabilities come from the specified version of Kubernetes and the specified APIs, never from the program (apis.go).
//   - Functions that read a clock, make random values or ask a cluster or a name server are rejected if they have an
//     effect on the result (pure.go). Functions whose results have the order of a Go map return them sorted.
//   - Dependencies are never fetched; a schema that refers to another document is rejected.
//
// It is called in the isolated renderer, which bounds time, memory and output.
package helmchart
