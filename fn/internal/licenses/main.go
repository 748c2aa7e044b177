// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command licenses checks the licences of all modules that are linked into the specified packages, and can write
// their texts to one file, as most of them require of distributors of a binary. It reads the module cache and
// changes no other files.
//
//	go run ./fn/internal/licenses [-o FILE] PACKAGE...
//
// It fails and names the file if a module has no licence, one that it does not recognise, or one that is not on the
// list of licences compatible with Apache-2.0.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := flag.String("o", "", "write the licence texts to this `file`")
	flag.Parse()
	if err := run(ctx, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// run checks the licences of what packages link, and writes the texts to out where it is not empty.
func run(ctx context.Context, out string, packages []string) error {
	modules, err := findLinkedModules(ctx, packages)
	if err != nil {
		return err
	}
	if err := checkModuleLicenses(modules); err != nil {
		return err
	}
	fmt.Printf("licenses: %d modules, all with a licence that goes with Apache-2.0\n", len(modules))
	if out == "" {
		return nil
	}
	var b bytes.Buffer
	writeLicenseTexts(&b, modules)
	return os.WriteFile(out, b.Bytes(), 0o644)
}
