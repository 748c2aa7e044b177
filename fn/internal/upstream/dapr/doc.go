// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package dapr is a module of its own for the program that is made of Dapr's code: [patcher] answers as Dapr's sidecar
// injector does. A test of the package policies starts it as a process, so that its dependencies are none of Prerig's.
//
// [patcher]: https://pkg.go.dev/github.com/prerig/prerig/fn/internal/upstream/dapr/patcher
package dapr
