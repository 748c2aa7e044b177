// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/prerig/prerig/pipeline/verify"
)

const verifyDir = "pipeline/verify"

// verifyReportSchema returns the JSON Schema of what prerig verify -o json writes.
func verifyReportSchema() (generatedFile, error) {
	name := strings.ToLower(verify.ReportKind) + "_v1alpha1.json"
	r := &jsonschema.Reflector{ExpandedStruct: true, Anonymous: true}
	if err := r.AddGoComments(module, "./"+verifyDir); err != nil {
		return generatedFile{}, fmt.Errorf("reading the comments of %s: %w", verifyDir, err)
	}
	schema := r.Reflect(&verify.Report{})
	schema.ID = jsonschema.ID("https://prerig.dev/schemas/" + name)
	schema.Title = verify.ReportKind
	setConst(schema, "apiVersion", verify.ReportAPIVersion)
	setConst(schema, "kind", verify.ReportKind)
	state, _ := schema.Definitions["Pod"].Properties.Get("state")
	for _, one := range verify.States {
		state.Enum = append(state.Enum, string(one))
	}
	kind, _ := schema.Definitions["Cause"].Properties.Get("kind")
	for _, one := range verify.CauseKinds {
		kind.Enum = append(kind.Enum, string(one))
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return generatedFile{}, fmt.Errorf("writing the schema: %w", err)
	}
	return generatedFile{"schemas/" + name, append(text, '\n')}, nil
}
