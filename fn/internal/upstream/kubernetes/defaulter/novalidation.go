// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build novalidation

package main

import "errors"

// errWithout is the answer of builds without the API server's validation and admission: the modules of older versions
// of Kubernetes do not list their dependencies.
var errWithout = errors.New("validating: this defaulter was built without validation")

func validated([]byte) ([]byte, error) { return nil, errWithout }

func constrained([]byte) ([]byte, error) { return nil, errWithout }
