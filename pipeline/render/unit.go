// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

// Unit describes an Application, or a Kustomization of Flux in a review, that a build renders as a unit.
type Unit struct {
	// Name is NAMESPACE/NAME, as of the objects.
	Name string `json:"name"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Cluster is the name or server of the cluster that it is for.
	Cluster string `json:"cluster,omitempty"`
	// Directories are those of the source that it is rendered from.
	Directories []string `json:"directories,omitempty"`
	// Keeps is why objects that it no longer renders stay in the cluster, in words; "" if they are deleted.
	Keeps string `json:"keeps,omitempty"`
	// Outlived is why its objects stay when it is deleted itself; "" if they are deleted with it.
	Outlived string `json:"outlived,omitempty"`
	// Suspended reports whether its controller does nothing for it, and Manual whether it is synced by hand.
	Suspended bool `json:"suspended,omitempty"`
	Manual    bool `json:"manual,omitempty"`
	// Left is why it is not rendered but left to the cluster, in words; "" for one that is rendered.
	Left string `json:"left,omitempty"`
}
