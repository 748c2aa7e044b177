// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build novalidation

package main

import "errors"

// validated stands for the API server's validation where it is left out: the modules of older versions of Kubernetes do
// not list what it needs.
func validated([]byte) ([]byte, error) {
	return nil, errors.New("validating: this defaulter was built without validation")
}
