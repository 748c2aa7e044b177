// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"maps"
	"slices"
)

// TargetKinds returns the kinds of targets that can be opened.
func TargetKinds() []string { return slices.Sorted(maps.Keys(targetKinds)) }
