// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package helmchart renders Helm charts as functions of their files and of what a pipeline says.
//
// Loading, values, templates and their order are Helm's own packages (helm.sh/helm/v4), so that the objects are those of
// helm template. What is not a function of the inputs is different:
//
//   - Capabilities come from the given version of Kubernetes and the given APIs, never from the program (apis.go).
//   - Functions that read a clock, make random values or ask a cluster or a name server are refused where they have an
//     effect on the result (pure.go). Functions whose results have the order of a Go map give them sorted.
//   - Dependencies are never fetched; a schema that refers to another document is refused.
//
// It is called in the isolated renderer, which bounds time, memory and output.
package helmchart
