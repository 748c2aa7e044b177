// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package ambient plans how namespaces move from sidecars to Istio's ambient mode, and writes the files of each step: NetworkPolicies,
// waypoints, routes, policies with targetRefs, labels, and manifests without sidecars. It accepts and returns values; it reads and writes
// no file.
//
// What breaks is found by the rules of fn/lint over the files as they would be. What a step cannot express with the same meaning is a [Note],
// and is left as it is.
package ambient
