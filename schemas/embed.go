// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package schemas holds the JSON Schemas of Prerig's own objects, for editors and other tools. They are generated
// from the Go types and their comments:
//
//	go run ./schemas/generate          writes them
//	go run ./schemas/generate -check   reports whether they are up to date
//
// Prerig itself does not validate with them: the decoders are stricter and have better messages.
package schemas

import _ "embed"

// InjectionPolicy is the JSON Schema (draft 2020-12) of an InjectionPolicy prerig.dev/v1alpha1.
//
//go:embed injectionpolicy_v1alpha1.json
var InjectionPolicy []byte

// RenderPipeline is the JSON Schema (draft 2020-12) of a RenderPipeline prerig.dev/v1alpha1.
//
//go:embed renderpipeline_v1alpha1.json
var RenderPipeline []byte

// ChartLock is the JSON Schema (draft 2020-12) of charts.lock.yaml.
//
//go:embed chartlock_v1alpha1.json
var ChartLock []byte

// VerifyReport is the JSON Schema (draft 2020-12) of what prerig verify -o json writes.
//
//go:embed verifyreport_v1alpha1.json
var VerifyReport []byte

// FunctionDefinition is the KRMFunctionDefinition of prerig-fn, in YAML.
//
//go:embed krmfunctiondefinition.yaml
var FunctionDefinition []byte
