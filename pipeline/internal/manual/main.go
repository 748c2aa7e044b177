// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command manual writes the manual pages of prerig and its completions for shells, which a release has:
//
//	go run ./pipeline/internal/manual -version v0.2.0 -date 2026-11-23 DIR
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/prerig/prerig/pipeline/cli"
)

func main() {
	version := flag.String("version", "dev", "version in the foot of the pages")
	date := flag.String("date", "", "date in the foot of the pages, as 2006-01-02")
	flag.Parse()
	if err := write(flag.Arg(0), *version, *date); err != nil {
		fmt.Fprintf(os.Stderr, "error: writing the manual: %v\n", err)
		os.Exit(1)
	}
}

// write makes the directories man/man1 and completions in dir.
func write(dir, version, date string) error {
	if dir == "" {
		return fmt.Errorf("no directory is given")
	}
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	// A default that comes from a variable would be the one of this machine. The directory for caches has to be absolute.
	for name, value := range map[string]string{"PRERIG_STATE": "", "HOME": "/home/you", "XDG_CACHE_HOME": "/home/you/.cache"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	root := cli.NewRoot(cli.Streams{Out: io.Discard, Err: io.Discard}, version)
	root.DisableAutoGenTag = true // it has a date of its own
	pages, completions := filepath.Join(dir, "man", "man1"), filepath.Join(dir, "completions")
	for _, made := range []string{pages, completions} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			return err
		}
	}
	// Before completions add a command of their own, and after cobra has added its help.
	root.InitDefaultHelpCmd()
	header := &doc.GenManHeader{Section: "1", Date: &day, Source: "Prerig " + version, Manual: "Prerig Manual"}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	return writeCompletions(root, completions)
}

// writeCompletions names the files as the shells and package managers do.
func writeCompletions(root *cobra.Command, dir string) error {
	for name, generate := range map[string]func(io.Writer) error{
		"prerig.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"_prerig":     root.GenZshCompletion,
		"prerig.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"prerig.ps1":  root.GenPowerShellCompletionWithDesc,
	} {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := generate(file); err != nil {
			file.Close()
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}
