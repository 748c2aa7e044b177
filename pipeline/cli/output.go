// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/cli/files"
)

// The formats of several commands, in the order of the help. The first is the default.
var (
	textFormats     = []string{"text", "json", "yaml"}
	manifestFormats = []string{"yaml", "json"}
)

// formatWords are the names of all formats. A value of -o that is one of them was not meant as a file.
var formatWords = []string{"text", "json", "yaml", "sarif", "markdown", "review", "table", "wide", "name", "junit",
	"xml", "html", "yml"}

// formatFlag adds -o, which selects a format. The first one is the default.
func formatFlag(cmd *cobra.Command, streams Streams, format *string, formats []string) {
	last := len(formats) - 1
	cmd.Flags().StringVarP(format, "output", "o", formats[0],
		"output format: "+strings.Join(formats[:last], ", ")+" or "+formats[last])
	completeChoice(cmd, "output", formats)
	addCheck(cmd, func() error {
		if *format == "table" && slices.Contains(formats, "text") && !slices.Contains(formats, *format) {
			fmt.Fprintln(streams.Err, "warning: -o table is now -o text")
			*format = "text"
		}
		return checkChoice("output", *format, formats)
	})
}

// destination is what a command writes and where: the values of -o and --to.
type destination struct {
	format string
	to     string
}

// destinationFlags adds --to for a file or directory, with its default, and -o for a format. Without formats, -o is
// known only because it was the name of --to; as such it also works with them, and a warning names the new flag. Checks
// of --to must be added before.
func (d *destination) destinationFlags(cmd *cobra.Command, streams Streams, to, usage string, formats []string) {
	f := cmd.Flags()
	f.StringVar(&d.to, "to", to, usage)
	if len(formats) > 0 {
		f.StringVarP(&d.format, "output", "o", formats[0], "output format: "+strings.Join(formats, " or "))
		completeChoice(cmd, "output", formats)
	} else {
		f.StringVarP(&d.format, "output", "o", "", "")
		mustRegister(f.MarkHidden("output"))
	}
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := d.moveFile(cmd, streams, formats); err != nil {
			return err
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

// moveFile makes the value of -o that of --to if it is a file, as it was in earlier versions.
func (d *destination) moveFile(cmd *cobra.Command, streams Streams, formats []string) error {
	output := cmd.Flags().Lookup("output")
	if !output.Changed || slices.Contains(formats, d.format) {
		return nil
	}
	file := d.format
	if file == "" || isFormatWord(file, formats) || cmd.Flags().Changed("to") {
		if len(formats) == 0 {
			return fmt.Errorf("--output is %q, and this command has one format; use --to for a file", file)
		}
		return fmt.Errorf("--output is %q; it can be %s; use --to for a file", file, strings.Join(formats, " or "))
	}
	fmt.Fprintf(streams.Err, "warning: -o is for formats; use --to %s\n", quoteShellWord(file))
	output.Changed, d.format = false, output.DefValue
	return cmd.Flags().Set("to", file)
}

// isFormatWord reports whether a word was meant as a format: it is one, or a slip of one letter away from one of the
// command.
func isFormatWord(word string, formats []string) bool {
	if strings.ContainsAny(word, "./-") || filepath.Base(word) != word {
		return false
	}
	return slices.Contains(formatWords, strings.ToLower(word)) ||
		slices.ContainsFunc(formats, func(f string) bool { return strict.Distance(word, f) <= 1 })
}

// writesFile reports whether a file or directory is named, and not standard output.
func (d *destination) writesFile() bool { return d.to != "" && d.to != "-" }

// write writes a YAML document in the format, to the file or standard output.
func (d *destination) write(ctx context.Context, streams Streams, text []byte) error {
	text, err := inFormat(d.format, text)
	if err != nil {
		return err
	}
	if !d.writesFile() {
		if _, err := streams.Out.Write(text); err != nil {
			return fmt.Errorf("writing standard output: %w", err)
		}
		return nil
	}
	out, err := files.To(d.to, text)
	if err != nil {
		return err
	}
	return files.Write(ctx, []files.Output{out}, nil)
}

// writeStructured writes a value as JSON or YAML, with the same keys.
func writeStructured(w io.Writer, format string, v any) error {
	if format == "json" {
		return writeJSON(w, v)
	}
	return writeYAML(w, v)
}

func writeYAML(w io.Writer, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// inFormat returns a YAML document in a format. Comments are lost in JSON.
func inFormat(format string, text []byte) ([]byte, error) {
	if format != "json" {
		return text, nil
	}
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	var b strings.Builder
	err := writeJSON(&b, value)
	return []byte(b.String()), err
}

// objectList returns the objects of YAML documents as a Kubernetes List in JSON, which kubectl apply reads. Lists among
// them are resolved.
func objectList(stream []byte) ([]byte, error) {
	file, err := manifest.Parse("the output", stream)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	items := []map[string]any{}
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		elements, isList, err := doc.Items()
		if err != nil {
			return nil, fmt.Errorf("writing JSON: %w", err)
		}
		if !isList {
			elements = []*manifest.Document{doc}
		}
		for _, one := range elements {
			object, err := one.Object()
			if err != nil {
				return nil, fmt.Errorf("writing JSON: %w", err)
			}
			items = append(items, object)
		}
	}
	var b bytes.Buffer
	err = writeJSON(&b, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	return b.Bytes(), err
}
