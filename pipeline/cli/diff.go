// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/preview"
)

func newDiff(streams Streams, version string) *cobra.Command {
	var l local
	var output, against string
	var exitCode bool
	cmd := newCommand("diff [PIPELINE...]", "Show what would change on the rendered branches")
	cmd.Long = `Render pipelines as the daemon would and compare the result with what is published. A change
that many objects have in common is shown once, with the list of the objects: the upgrade
of a mesh reads as a handful of changes, however many applications there are.`
	cmd.Example = `  prerig diff --source .                       # a pull request, checked out here
  prerig diff --source . -o markdown > comment.md
  prerig diff team/shop --against rendered/`
	l.flags(cmd)
	l.sourceFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, markdown or json")
	cmd.Flags().StringVar(&against, "against", "", "directory that prerig render -o has written, instead of the branches")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 where anything would change")
	register(cmd.MarkFlagDirname("against"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if output != "text" && output != "markdown" && output != "json" {
			return fmt.Errorf("the flag --output must be text, markdown or json, found %q", output)
		}
		p, closing, err := l.open(streams, version)
		if err != nil {
			return err
		}
		defer closing()
		entries, err := l.choose(args)
		if err != nil {
			return err
		}
		results := p.All(cmd.Context(), entries)
		l.bar.done()
		c := preview.Compare(results, func(r preview.Result) (map[string][]byte, error) {
			if against != "" {
				return readTree(filepath.Join(against, filepath.FromSlash(r.Path)))
			}
			return p.Published(cmd.Context(), r.Entry)
		})
		switch output {
		case "json":
			err = writeJSON(streams.Out, c)
		case "markdown":
			err = c.Markdown(streams.Out)
		default:
			err = c.Text(streams.Out)
		}
		switch {
		case err != nil:
			return err
		case c.Failed():
			return errReported
		case exitCode && !c.Empty():
			return findings{"the rendered manifests would change"}
		}
		return nil
	}
	return cmd
}

// readTree reads all files below a directory; one that does not exist has none.
func readTree(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return out, nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = content
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what is published: %w", err)
	}
	return out, nil
}
