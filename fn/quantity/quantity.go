// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package quantity reads Kubernetes' quantities in bounded time.
package quantity

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/foreign"
)

// maxExponentDigits bounds exponents. Kubernetes rounds and compares by multiplying with the power of ten, so that the twelve
// characters of 1e-999999999 take minutes of a processor and hundreds of megabytes.
const maxExponentDigits = 4

// Parse reads a quantity such as 100m, 128Mi or 1e3.
func Parse(text string) (resource.Quantity, error) {
	if !IsBounded(text) {
		return resource.Quantity{}, fmt.Errorf("the exponent of %s is too large", foreign.Quote(text))
	}
	return resource.ParseQuantity(text)
}

// IsBounded reports whether Kubernetes can read a text as a quantity, or reject it, in little time.
func IsBounded(text string) bool {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return true
	}
	exponent := strings.TrimLeft(strings.TrimLeft(text[at+1:], "+-"), "0")
	return len(exponent) <= maxExponentDigits || strings.Trim(exponent, "0123456789") != ""
}
