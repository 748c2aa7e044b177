// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package hermetic holds the tests that the function reads only its input: one reads the sources of the packages
// under fn, the others run the binary. It has no code of its own.
package hermetic
