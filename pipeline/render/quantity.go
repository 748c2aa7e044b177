// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/prerig/prerig/fn/quantity"
)

// parseQuantity reads a number of bytes as Kubernetes writes them.
func parseQuantity(text string) (int64, error) {
	quantity, err := quantity.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("reading the quantity %q: %w", text, err)
	}
	return quantity.Value(), nil
}
