// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package isolation

import "syscall"

func refusesNamespaces(error) (refused, lasting bool) { return false, false }

// Attributes has no effect on systems other than Linux.
func Attributes(bool) *syscall.SysProcAttr { return nil }
