// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package podmap works on pods as decoded maps: it merges patches by Kubernetes' rules, reverts changes, decodes
// pods into Kubernetes' Go types and reports which field has a wrong type or is unknown. It is independent of any
// sidecar.
package podmap
