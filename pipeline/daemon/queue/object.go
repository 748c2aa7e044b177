// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

// ObjectVersion is an object of a cluster as a process has seen it. The zero value is none, or one of which that is not known.
type ObjectVersion struct {
	// UID distinguishes the object from earlier and later ones of the same name.
	UID string `json:"uid,omitempty"`
	// Generation is higher after each change of its specification.
	Generation int64 `json:"generation,omitempty"`
}

// IsOlder reports whether a version is an earlier one of the same object as other. A recreated object begins with
// generation 1: it is not older than the one it replaces.
func (v ObjectVersion) IsOlder(other ObjectVersion) bool {
	return v.UID != "" && v.UID == other.UID && v.Generation < other.Generation
}
