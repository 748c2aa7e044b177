// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package podmap works on pods as maps, as decoding gives them: it merges patches by Kubernetes' rules, takes changes back, reads
// pods into Kubernetes' Go types and says which field has a wrong type or is not known. It knows nothing of any sidecar.
package podmap
