// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command generate writes what is derived from the Go types of Prerig's objects: the JSON Schemas, the
// KRMFunctionDefinition, and the table of enums that the strict decoder reads. Run it from the root of the module.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a file is not up to date")
	flag.Parse()
	if err := writeFiles(*check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeFiles writes the generated files, or compares them.
func writeFiles(check bool) error {
	files, err := generateFiles()
	if err != nil {
		return err
	}
	stale := 0
	for _, f := range files {
		old, err := os.ReadFile(f.path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if bytes.Equal(old, f.data) {
			continue
		}
		if check {
			stale++
			fmt.Fprintf(os.Stderr, "%s is not up to date\n", f.path)
			continue
		}
		if err := os.WriteFile(f.path, f.data, 0o644); err != nil {
			return err
		}
	}
	if stale > 0 {
		return fmt.Errorf("checking generated files: %d are not up to date; run: go run ./schemas/generate", stale)
	}
	return nil
}
