// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver predicts which objects a cluster's API server would reject, before they are sent to it. Built-in
// kinds are checked against the OpenAPI of the Kubernetes version, custom resources against their definitions, by
// the API server's own code. The package reads values and returns results; it changes no object and accesses
// neither files nor a cluster.
package apiserver
