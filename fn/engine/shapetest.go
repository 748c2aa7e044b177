// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "flag"

// isTest reports whether the program is a test that does not measure. Every workload is then injected by itself as well as by its shape, also
// with other names, and a difference is a panic.
func isTest() bool {
	bench := flag.Lookup("test.bench")
	return bench != nil && bench.Value.String() == ""
}
