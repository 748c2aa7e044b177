// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Sidecar describes a sidecar that is not Istio's: whom it is for, its parameters, and what it adds to the pod.
type Sidecar struct {
	// Name of the sidecar; it names the record of what was injected.
	Name string `json:"name"`
}
