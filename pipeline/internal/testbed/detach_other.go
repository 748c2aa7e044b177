// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package testbed

import "os/exec"

func detach(*exec.Cmd) {}
