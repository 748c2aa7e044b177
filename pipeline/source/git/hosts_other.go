// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package git

import "os"

func hostsFile() (file *os.File, name string, err error) { return temporaryHosts() }
