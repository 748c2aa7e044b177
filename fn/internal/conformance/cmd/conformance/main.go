// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command conformance runs a corpus and prints a table by version. It exits with 1 unless every case is equal.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/prerig/prerig/fn/internal/conformance"
)

func main() {
	corpus := flag.String("corpus", "../shared/istio", "directory of the corpus")
	verbose := flag.Bool("v", false, "print the differences")
	only := flag.String("run", "", "regular expression for VERSION/NAME of the cases to run")
	flag.Parse()
	ok, err := run(*corpus, *only, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(corpus, only string, verbose bool) (bool, error) {
	versions, err := conformance.Load(corpus)
	if err != nil {
		return false, err
	}
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, fmt.Errorf("reading -run: %w", err)
	}
	report := conformance.RunAll(versions, func(c *conformance.Case) bool { return pattern.MatchString(c.ID()) })
	return report.Good(), report.Write(os.Stdout, verbose)
}
