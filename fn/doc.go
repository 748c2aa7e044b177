// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package fn injects sidecars into the workloads of a list of Kubernetes objects, as InjectionPolicies describe.
//
// The engine, which is in package engine, has two entry points. [Execute] is the KRM function: a ResourceList on
// standard input and output, for kustomize and kpt. [Injector.Run] accepts documents and returns documents, for the
// command line and the pipeline. Both change only the pod templates of workloads that a policy injects; every other
// byte of a document stays as it is.
//
// The package reads only its arguments: no environment, no file, no clock, no network. The same input produces the
// same output.
package fn
