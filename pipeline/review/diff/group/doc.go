// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package group finds the changes that many objects have in common, so that what one change of a mesh or of a chart does to hundreds
// of applications is told once.
//
// Files are taken apart into objects and each object's difference into runs of changed lines. Two runs are the same change where
// they have the same lines at the same fields; the position of a pod template in its object does not matter, nor what stands around
// the lines. Where lines hold values that are the object's own, such as its name, and more objects agree without them than with
// them, a placeholder stands for the value: <name>. A change that only one object has is always shown as it is. Runs that the same
// objects have are one Change. Values of Secrets are hidden.
//
// The package takes and returns values, and leaves nothing out.
package group
