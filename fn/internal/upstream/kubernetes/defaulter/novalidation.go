// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build novalidation

package main

import "errors"

// validated replaces the API server's validation in builds without it: the modules of older versions of Kubernetes
// do not list its dependencies.
func validated([]byte) ([]byte, error) {
	return nil, errors.New("validating: this defaulter was built without validation")
}
