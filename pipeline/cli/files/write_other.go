// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package files

import (
	"io/fs"
	"os"
)

func keepOwner(*os.File, fs.FileInfo) {}

// linkCount, isOurs and isGone say what is safe where the system does not tell.
func linkCount(fs.FileInfo) int { return 1 }
func isOurs(fs.FileInfo) bool   { return false }
func isGone(int) bool           { return false }

// syncDirectory does nothing: the system has no such thing.
func syncDirectory(place, string) error { return nil }
