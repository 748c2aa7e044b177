// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import "flag"

var update = flag.Bool("update", false, "rewrite golden files and RULES.md")
