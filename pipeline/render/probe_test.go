// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

// probe is filled in by the tests of isolation.
func probe() {}
