// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/review/diff"
)

func (in *injectRun) printDiff(b *batch.Batch) error {
	for _, f := range b.Files {
		patch, hidden := visiblePatch(f.Diff())
		if hidden {
			fmt.Fprintf(in.streams.Err, "%s: the diff has invisible characters, shown as <U+202E>, and cannot be applied as a patch\n", f.Input.Path)
		}
		if wantsColour(in.colour, in.streams) {
			patch = diff.Colour(patch)
		}
		if _, err := in.streams.Out.Write(patch); err != nil {
			return fmt.Errorf("writing the diff: %w", err)
		}
	}
	return nil
}

// visiblePatch escapes the characters of a diff that are invisible to a reader, and reports whether it contains
// any.
func visiblePatch(patch []byte) (shown []byte, hidden bool) {
	if !bytes.ContainsFunc(patch, func(r rune) bool { return r != '\n' && r != '\r' && foreign.IsHidden(r) }) {
		return patch, false
	}
	for line := range bytes.Lines(patch) {
		text := bytes.TrimRight(line, "\r\n")
		shown = append(append(shown, foreign.Visible(string(text))...), line[len(text):]...)
	}
	return shown, true
}

// writeManifests puts the manifests where they belong.
func (in *injectRun) writeManifests(ctx context.Context, b *batch.Batch) error {
	var outs []files.Output
	var err error
	switch {
	case in.check:
		return nil
	case in.inPlace:
		if outs, err = in.filesInPlace(b); err == nil {
			err = in.removeLeftovers(b)
		}
	case in.writesFile() && isOutputDirectory(in.to):
		var dir *files.Directory
		if dir, err = files.OpenDirectory(in.to); err != nil {
			return err
		}
		defer dir.Close()
		outs, err = in.outputFiles(b, dir)
	case in.writesFile():
		outs = make([]files.Output, 1)
		text := b.Stream()
		if in.format == "json" {
			if text, err = objectList(text); err != nil {
				return err
			}
		}
		outs[0], err = files.To(in.to, text)
	case in.diff:
		return nil
	default:
		return in.writeStream(b)
	}
	if err != nil {
		return err
	}
	bar := newBar(in.streams.Err, "writing")
	defer bar.clearLine()
	return files.Write(ctx, outs, func(done int) { bar.setProgress(done, len(outs), "") })
}

// writeStream writes the manifests to standard output.
func (in *injectRun) writeStream(b *batch.Batch) error {
	err := error(nil)
	if in.format == "json" {
		var text []byte
		if text, err = objectList(b.Stream()); err != nil {
			return err
		}
		_, err = in.streams.Out.Write(text)
	} else {
		err = b.WriteStream(in.streams.Out)
	}
	if err != nil {
		return fmt.Errorf("writing standard output: %w", err)
	}
	return nil
}

// filesInPlace returns the files that change. Those outside of the directories that were named are not among them.
func (in *injectRun) filesInPlace(b *batch.Batch) ([]files.Output, error) {
	var outs []files.Output
	var errs []error
	for _, f := range b.Files {
		if f.Input.Stdin() {
			errs = append(errs, fmt.Errorf("writing in place: %s is not a file; specify the files to change", inputName(f.Input)))
			continue
		}
		if !f.Changed() || f.Incomplete() {
			continue
		}
		if target, leaves := f.Input.Leaves(); leaves {
			in.unwritten++
			fmt.Fprintf(in.streams.Err, "warning: %s: not changed, because it is a link to %s, which is not in %s; specify the file itself to change it\n", f.Input.Path, target, f.Input.Root)
			continue
		}
		if n := f.Input.Names(); n > 1 {
			fmt.Fprintf(in.streams.Err, "warning: %s: the file has %d names (hard links), and only this one gets the new content\n", f.Input.Path, n)
		}
		out, err := files.InPlace(f.Input, f.Bytes())
		errs = append(errs, err)
		outs = append(outs, out)
	}
	return outs, errors.Join(errs...)
}

// inputName names a stream as people do.
func inputName(in files.Input) string {
	if in.Path == files.StdinName {
		return "standard input"
	}
	return in.Path
}

// removeLeftovers removes the files that killed runs have left beside the manifests, and reports that.
func (in *injectRun) removeLeftovers(b *batch.Batch) error {
	removed, kept, err := files.Clean(b.Leftovers())
	if n := len(removed); n > 0 && !in.quiet {
		fmt.Fprintf(in.streams.Err, "info: removed %s left by a killed run, such as %s\n",
			countWithNoun(n, "temporary file"), removed[0])
	}
	if n := len(kept); n > 0 {
		fmt.Fprintf(in.streams.Err, "warning: %s of another run, such as %s, may still be in use and %s kept; remove them when no prerig is running\n",
			countWithNoun(n, "temporary file"), kept[0], map[bool]string{true: "was", false: "were"}[n == 1])
	}
	return err
}

// writeFlags adds the flags that choose what is written, and where.
func (in *injectRun) writeFlags(cmd *cobra.Command) {
	refuseTogether(cmd, "in-place", "to", "check")
	for _, name := range []string{"in-place", "check", "diff"} {
		refuseTogether(cmd, "output", name)
	}
	in.destinationFlags(cmd, in.streams, "", "file to write, or directory (existing, or with a trailing /) for one file per input", manifestFormats)
}

// isOutputDirectory reports whether --to names a directory, which gets a file for each input.
func isOutputDirectory(output string) bool {
	info, err := os.Stat(output)
	return err == nil && info.IsDir() || strings.HasSuffix(output, "/") ||
		strings.HasSuffix(output, string(filepath.Separator))
}

// outputFiles returns a file for each input in the directory of --to.
func (in *injectRun) outputFiles(b *batch.Batch, dir *files.Directory) ([]files.Output, error) {
	var outs []files.Output
	var errs []error
	from := map[string]string{}
	put := func(input files.Input, data []byte) {
		if input.Stdin() {
			errs = append(errs, fmt.Errorf("writing into the directory %s: standard input has no file name; specify a file with --to", in.to))
			return
		}
		path := filepath.Join(in.to, input.Rel)
		if other, taken := from[path]; taken {
			errs = append(errs, fmt.Errorf("writing %s: both %s and %s would be written there", path, other, input.Path))
			return
		}
		from[path] = input.Path
		out, err := dir.To(input.Rel, data)
		errs = append(errs, err)
		outs = append(outs, out)
	}
	for _, f := range b.Files {
		if content, ok := f.Output(); ok && !f.Incomplete() {
			put(f.Input, content)
		}
	}
	for _, input := range b.Beside() {
		put(input, input.Data)
	}
	return outs, errors.Join(errs...)
}
