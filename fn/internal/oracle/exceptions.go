// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

// exception is a difference that stays, with its reason.
type exception struct {
	name, reason string
	// applies reports whether the case's whole difference is this one.
	applies func(k *Case) bool
}

// exceptions are all of them. Each is narrow, and its cases are counted.
var exceptions []exception
