// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/source/content"
)

// Read reads the files that args name, see files.Read, and classifies the manifests. Other files in a directory are
// skipped, and Notes reports them; an explicitly named file that is not a manifest is a problem, and so is a broken
// manifest. Problems are among the results of Run, with those of all other files.
//
// The error is that of ctx, or the reason no file at all could be read.
func Read(ctx context.Context, args []string, o files.Options) (*Batch, error) {
	b := &Batch{index: newIndex()}
	listing, err := files.Read(ctx, args, o, b.addInput)
	if err != nil {
		return nil, err
	}
	b.leftovers = listing.Leftovers
	for _, p := range listing.Passed {
		why := whyNotRead[p.Why]
		if p.Why == files.Large && content.LooksLikeObject(string(p.Head)) {
			b.addError(p.Path, fmt.Errorf("reading %s: it is larger than %d MiB, the size limit for one file; split it", p.Path, files.MaxSize>>20))
			continue
		}
		b.passed = append(b.passed, content.Skipped{Reason: why, Place: p.Path})
	}
	for _, err := range listing.Errors {
		path := ""
		if at := new(files.ReadError); errors.As(err, &at) {
			path = at.Path
		}
		b.addError(path, err)
	}
	if len(b.Files) == 0 && len(b.passed) == 0 && len(listing.Errors) > 0 {
		return nil, errors.Join(listing.Errors...)
	}
	return b, nil
}

// Parse returns the batch of inputs that were not read from files. The error names every one that is not text.
func Parse(inputs []files.Input) (*Batch, error) {
	b := &Batch{}
	var errs []error
	for _, in := range inputs {
		m, err := manifest.Parse(in.Path, in.Data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.Files = append(b.Files, newFile(in, m.Docs))
	}
	return b, errors.Join(errs...)
}

// addError notes what could not be read, in the file at path where that is known.
func (b *Batch) addError(path string, err error) {
	r := result.Result{Severity: result.Error, Message: err.Error()}
	if path != "" {
		r.File = &result.File{Path: path, Line: lineIn(r.Message, path)}
	}
	b.problems = append(b.problems, r)
}

// lineIn returns the line of a file that a message names as PATH:LINE, or 0.
func lineIn(message, path string) int {
	_, rest, _ := strings.Cut(message, path+":")
	digits, _, _ := strings.Cut(rest, ":")
	line, _ := strconv.Atoi(digits)
	return line
}

// addInput sorts one file.
func (b *Batch) addInput(in files.Input) {
	if why, place := reasonToSkip(b.index, in); why != nil {
		b.skipFile(in, content.Skipped{Reason: why, Place: place})
		return
	}
	m, err := manifest.ParseShared(in.Path, in.Data)
	if err != nil {
		f := content.RecognizeBroken(in.Path, decodeText(in.Data), err)
		b.addDocuments(in, nil, []content.Finding{f})
		return
	}
	if in.Stdin() {
		in.Data = nil // the documents contain all of it, and a stream is not compared with the result
		b.repeated = append(b.repeated, takeLastKeys(m.Docs)...)
	}
	found := make([]content.Finding, len(m.Docs))
	for i, d := range m.Docs {
		found[i] = content.Recognize(d)
	}
	b.addDocuments(in, m.Docs, found)
}

// takeLastKeys leaves out the keys that later ones of the same mapping override, and returns warnings of them. A stream
// is the output of a program, such as helm template, that others read in this way; a repeated key in a file is a
// mistake of its author, and an error.
func takeLastKeys(docs []*manifest.Document) (warnings result.Results) {
	for i, d := range docs {
		next, repeated := d.WithLastKeys()
		for _, key := range repeated {
			warnings = append(warnings, repeatedKeyResult(next, key))
		}
		docs[i] = next
	}
	return warnings
}

func repeatedKeyResult(d *manifest.Document, key manifest.RepeatedKey) result.Result {
	r := result.Result{
		Severity: result.Warning, File: &result.File{Path: d.Path(), Index: d.Index(), Line: key.Line},
		Field:       &result.Field{Path: key.Path},
		Message:     "the key is there more than once in the same mapping; the last one counts, as in Helm and Argo CD",
		ResourceRef: &result.ResourceRef{},
	}
	if obj, err := d.Object(); err == nil {
		metadata, _ := obj["metadata"].(map[string]any)
		r.ResourceRef.APIVersion, _ = obj["apiVersion"].(string)
		r.ResourceRef.Kind, _ = obj["kind"].(string)
		r.ResourceRef.Namespace, _ = metadata["namespace"].(string)
		r.ResourceRef.Name, _ = metadata["name"].(string)
	}
	return r
}

// reasonToSkip returns the reason to skip a file, whatever its content, and the place to report.
func reasonToSkip(index *content.Index, in files.Input) (why *content.Reason, place string) {
	if in.Stdin() {
		return nil, ""
	}
	absolute, err := filepath.Abs(in.Path)
	if err != nil {
		return nil, ""
	}
	why, up := index.ReasonToSkip(filepath.ToSlash(absolute))
	place = in.Path
	if up > 0 {
		place = filepath.ToSlash(filepath.Join(filepath.Dir(in.Path), strings.Repeat("../", up))) + "/"
	}
	return why, place
}

// newIndex returns an index of the files of this machine.
func newIndex() *content.Index {
	return &content.Index{
		Exists: func(name string) bool {
			_, err := os.Stat(name)
			return err == nil
		},
		Read: func(name string) ([]byte, error) {
			if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > largestKustomization {
				return nil, fs.ErrInvalid
			}
			return os.ReadFile(name)
		},
	}
}

// largestKustomization is the most that is read of one, in bytes. Theirs is a list of names.
const largestKustomization = 1 << 20

// addDocuments puts a file to those that are worked on, or passes it over. docs is nil where it could not be split.
func (b *Batch) addDocuments(in files.Input, docs []*manifest.Document, found []content.Finding) {
	f := newFile(in, docs)
	var why *content.Reason
	var cause error
	work := false
	for i, one := range found {
		if in.Root == "" && (one.Reason == content.Fragment || one.Reason == content.ResourceList) {
			one = content.Finding{} // the engine reports the missing containers, and injects the items
		}
		switch {
		case one.Err != nil:
			b.addError(in.Path, one.Err)
			work, f.incomplete = true, true
		case one.Reason != nil && why == nil:
			why, cause = one.Reason, one.Cause
		}
		if docs != nil {
			f.idle[i] = one.Err != nil || one.Reason != nil
			work = work || !f.idle[i] && !docs[i].Empty()
		}
	}
	switch {
	case why == nil, in.Stdin() && why == content.Plain:
		b.Files = append(b.Files, f)
	case in.Root == "" && why == content.Unfilled:
		b.addError(in.Path, fmt.Errorf("reading %w; %s", cause, why.Instead))
	case in.Root == "" && cause != nil:
		b.addError(in.Path, cause)
	case in.Root == "":
		b.addError(in.Path, namedFileError(why, in.Path))
	case work: // the other documents of the file are worked on
		b.Files = append(b.Files, f)
		b.passed = append(b.passed, skippedPart(in, why, cause))
	default:
		b.skipFile(in, skippedPart(in, why, cause))
	}
}

// skippedPart describes what is skipped of a file.
func skippedPart(in files.Input, why *content.Reason, cause error) content.Skipped {
	s := content.Skipped{Reason: why, Place: in.Path}
	if why == content.Unfilled {
		s.Why = cause
	}
	return s
}

// skipFile passes over a whole file.
func (b *Batch) skipFile(in files.Input, what content.Skipped) {
	if in.Root == "" {
		b.addError(in.Path, namedFileError(what.Reason, in.Path))
		return
	}
	b.passed = append(b.passed, what)
	if what.Reason.Copied {
		b.beside = append(b.beside, in)
	}
}

// namedFileError is the problem of a file that was named itself and holds no manifest.
func namedFileError(r *content.Reason, path string) error {
	article := "a"
	if strings.ContainsAny(r.One[:1], "AEIOaeio") {
		article = "an"
	}
	advice := r.Instead
	if base := filepath.Base(path); r == content.Plain && strings.HasPrefix(base, "values") {
		advice += "; for values of a chart, render it with them: helm template CHART -f " + base
	}
	return fmt.Errorf("reading %s: it is %s %s; %s", path, article, r.One, advice)
}

// decodeText returns the text of a file, also where it is UTF-16, which some shells write.
func decodeText(data []byte) string {
	if len(data) < 2 || data[0]^data[1] != 0xfe^0xff {
		return string(data)
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		lo, hi := data[i], data[i+1]
		if data[0] == 0xfe {
			lo, hi = hi, lo
		}
		units = append(units, uint16(lo)|uint16(hi)<<8)
	}
	return string(utf16.Decode(units))
}
