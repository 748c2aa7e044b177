// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

// Unit describes an Application, or a Kustomization of Flux in a review, that a build renders as a unit.
type Unit struct {
	// Name is NAMESPACE/NAME, as of the objects.
	Name string `json:"name"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Keeps is why objects that it no longer renders stay in the cluster, in words; "" if they are deleted.
	Keeps string `json:"keeps,omitempty"`
	// Outlived is why its objects stay when it is deleted itself; "" if they are deleted with it.
	Outlived string `json:"outlived,omitempty"`
}
