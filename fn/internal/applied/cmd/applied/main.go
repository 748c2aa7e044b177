// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command applied checks that what injections write can be applied; see package applied.
//
//	applied -validator dist/prerig-validate [-charts FILE] [-installations NAME,NAME] [-corpora DIR:DIR] [-examples DIR]
//	        [-n 2000] [-seed 1] [-show]
//
// It exits with 1 where a result is rejected that should not be.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/fn/internal/applied"
)

func main() {
	var o applied.Options
	flag.StringVar(&o.Validator, "validator", "dist/prerig-validate", "the program prerig-validate")
	flag.StringVar(&o.Charts, "charts", "", "command that renders Istio's charts; without it Istio's installations are left out")
	flag.Func("installations", "names of Istio's installations, separated by commas; without it all are checked", func(names string) error {
		o.Installations = strings.Split(names, ",")
		return nil
	})
	corpora := flag.String("corpora", "", "directories with Istio's test cases")
	flag.StringVar(&o.Examples, "examples", "", "directory of the examples")
	flag.IntVar(&o.Count, "n", 2000, "number of random workloads for Istio's installations, and for the built-in policies")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of the workloads")
	show := flag.Bool("show", false, "print the objects of the first failure of each kind")
	flag.Parse()
	o.Corpora = filepath.SplitList(*corpora)
	report, err := applied.Run(context.Background(), o)
	if report != nil {
		_ = report.Write(os.Stdout, *show)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "applied:", err)
		os.Exit(1)
	}
	if len(report.Failures) > 0 {
		os.Exit(1)
	}
}
