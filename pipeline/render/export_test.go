// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

// Enclose lets the tests' stand-in renderer enclose itself as the real one does.
func Enclose() { enclose() }
