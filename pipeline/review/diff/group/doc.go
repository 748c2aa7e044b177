// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package group finds the changes that many objects have in common, so that a change of a mesh or of a chart that
// affects hundreds of applications is shown once.
//
// Files are split into objects and each object's difference into runs of changed lines. Two runs are the same
// change if they have the same lines at the same fields; neither the position of a pod template in its object nor
// the surrounding lines matter. If lines contain the object's own values, such as its name, and more objects agree
// without them than with them, a placeholder replaces the value: <name>. A change that only one object has is
// always shown unchanged. Runs that the same objects have are one Change. Values of Secrets are hidden.
//
// The package works on values only, and omits no change.
package group
