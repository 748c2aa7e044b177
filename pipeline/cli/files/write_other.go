// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package files

import (
	"io/fs"
	"os"
)

func keepOwner(*os.File, fs.FileInfo) {}

// linkCount, isOurs and isGone return safe defaults if the system does not provide the answer.
func linkCount(fs.FileInfo) int { return 1 }
func isOurs(fs.FileInfo) bool   { return false }
func isGone(int) bool           { return false }

// syncDirectory is a no-op: the system does not support it.
func syncDirectory(place, string) error { return nil }
