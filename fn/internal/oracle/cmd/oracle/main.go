// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command oracle compares Prerig with Istio's own injector; see package oracle.
//
//	oracle -tools DIR [-n 500] [-seed 1] [-built-in [-by-chart]] [-installation NAME] [-case INSTALLATION/SEED/NUMBER]
//
// It exits with 1 if it finds differences that are not listed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/internal/oracle"
)

// errDifferent is returned if differences were found; the report lists them.
var errDifferent = errors.New("there are differences")

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("oracle", flag.ContinueOnError)
	tools := flags.String("tools", "dist/upstream", "directory of the commands injector, charts and defaulter")
	injector := flags.String("injector", "", "command injector of another Istio")
	o := oracle.Options{}
	flags.IntVar(&o.Count, "n", 500, "number of workloads")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the workloads")
	flags.StringVar(&o.Version, "version", "1.31.0-rc.0", "version of Istio that is installed")
	flags.StringVar(&o.Charts, "charts", "", "directory manifests of another Istio")
	flags.BoolVar(&o.Raw, "raw", false, "give the webhook pods that no API server has defaulted")
	flags.BoolVar(&o.BuiltIn, "built-in", false, "compare the policy istio that comes with Prerig, with the installations' values over its own")
	flags.BoolVar(&o.ByChart, "by-chart", false, "with -built-in: compare with the chart's configuration, in place of an injector of the version")
	only := flags.String("installation", "", "compare only this installation")
	one := flags.String("case", "", "show one case whole: INSTALLATION/SEED/NUMBER")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Tools = oracle.Tools{Injector: filepath.Join(*tools, "injector"), Charts: filepath.Join(*tools, "charts"),
		Defaulter: filepath.Join(*tools, "defaulter")}
	if *injector != "" {
		o.Tools.Injector = *injector
	}
	o.Installations = append(oracle.Installations(), oracle.Written()...)
	if o.BuiltIn {
		o.Installations = slices.DeleteFunc(o.Installations, oracle.Installation.BeyondBuiltIn)
	}
	if *one != "" {
		return show(ctx, o, *one, out)
	}
	if *only != "" {
		o.Installations = named(o.Installations, *only)
	}
	report, err := oracle.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := report.Write(out); err != nil {
		return err
	}
	if report.Differences() > 0 {
		return errDifferent
	}
	return nil
}

func named(all []oracle.Installation, name string) []oracle.Installation {
	for _, i := range all {
		if i.Name == name {
			return []oracle.Installation{i}
		}
	}
	return nil
}

// show writes one case with all that was made of it.
func show(ctx context.Context, o oracle.Options, name string, out io.Writer) error {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return fmt.Errorf("reading the name of the case %q: it is INSTALLATION/SEED/NUMBER", name)
	}
	seed, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return fmt.Errorf("reading the name of the case %q: %w", name, err)
	}
	number, err := strconv.Atoi(parts[2])
	if err != nil {
		return fmt.Errorf("reading the name of the case %q: %w", name, err)
	}
	o.Seed, o.Installations = seed, named(o.Installations, parts[0])
	c, err := oracle.Show(ctx, o, number)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
