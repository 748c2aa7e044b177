// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver says what the API server of a cluster would refuse of objects before they get there. Built-in kinds are held against
// the OpenAPI of the version of Kubernetes, custom resources against their definitions, by the API server's own code. It reads values
// and gives results; it changes nothing, and reads no file and no cluster.
package apiserver
