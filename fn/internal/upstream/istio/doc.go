// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package istio is a module of its own for the programs that are made of Istio's code: [injector] answers as istiod's
// webhook does, [charts] renders Istio's charts. The oracle of the main module starts them as processes, so that their
// dependencies are none of Prerig's. Each directory of versions has the go.mod of an older Istio with which make injectors
// builds [injector].
//
// [injector]: https://pkg.go.dev/github.com/prerig/prerig/fn/internal/upstream/istio/injector
// [charts]: https://pkg.go.dev/github.com/prerig/prerig/fn/internal/upstream/istio/charts
package istio
