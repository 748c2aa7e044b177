// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package engine

import "errors"

// Confine is for the systems that renderers are confined on.
func Confine(string, ...string) error { return errors.New("programs are not confined on this system") }
