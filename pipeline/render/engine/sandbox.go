// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

// isolationLayers are the parts that a process can put on by itself.
type isolationLayers uint8

const (
	layerRoot isolationLayers = 1 << iota
	layerLandlock
	layerSeccomp
	allLayers = layerRoot | layerLandlock | layerSeccomp
)
