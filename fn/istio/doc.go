// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package istio turns an Istio injector configuration (data.config and data.values of the ConfigMap
// istio-sidecar-injector) and a mesh configuration (data.mesh of the ConfigMap istio) into an Injector: templates
// that are parsed once, the values, the mesh settings, and the Profile of the Istio version, which describes how
// that version's injector behaves.
//
// It renders templates and answers questions about the version. It never changes a pod: fn/inject does that. It
// reads no environment, clock, file or network, and an Injector is immutable and safe for concurrent use.
package istio
