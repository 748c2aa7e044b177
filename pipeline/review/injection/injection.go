// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package injection finds the parts of published manifests that an injection made. It works on values, and needs no
// policy: published manifests record themselves what can be removed again.
package injection

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/review/diff"
)

// removal is a policy that removes injections. Istio's own templates name the containers that are not the user's.
const removal = "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: remove}\nspec: {mode: Remove, istio: {injector: {builtIn: istio}}}\n"

// Remover removes injections from documents. It is safe for concurrent use.
type Remover struct{ injector *fn.Injector }

// NewRemover returns a Remover.
func NewRemover() (*Remover, error) {
	p, err := v1alpha1.Parse([]byte(removal))
	if err != nil {
		return nil, fmt.Errorf("preparing the removal: %w", err)
	}
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{p}, fn.WithWorkers(1))
	if err != nil {
		return nil, fmt.Errorf("preparing the removal: %w", err)
	}
	return &Remover{injector: injector}, nil
}

// Remove returns documents of one cluster without their injection, in their order. A document without an injection
// is returned as is, and one that an injection added is empty. The error is that of ctx.
func (r *Remover) Remove(ctx context.Context, docs []*manifest.Document) ([]*manifest.Document, error) {
	items := make([]fn.Item, len(docs))
	for i, doc := range docs {
		items[i] = fn.Item{Doc: doc, Index: i}
	}
	report, err := r.injector.Run(ctx, items)
	if err != nil {
		return nil, err
	}
	if len(report.Items) != len(items) {
		return docs, nil
	}
	out := make([]*manifest.Document, len(docs))
	for i, item := range report.Items {
		out[i] = item.Doc
	}
	return out, nil
}

// Lines returns the lines of a file of manifests, counted from 1, that an injection made: those that disappear when
// the injection is removed. It returns none for an unreadable file.
func (r *Remover) Lines(ctx context.Context, content []byte) []int {
	if len(content) == 0 {
		return nil
	}
	file, err := manifest.Parse("", content)
	if err != nil {
		return nil
	}
	without, err := r.Remove(ctx, file.Docs)
	if err != nil || slices.Equal(without, file.Docs) {
		return nil
	}
	var text bytes.Buffer
	for _, doc := range without {
		text.Write(doc.Raw())
	}
	return AddedLines(text.Bytes(), content)
}

// AddedLines returns the lines of a text, counted from 1, that another one has not.
func AddedLines(before, after []byte) []int {
	var out []int
	at := 0
	for line := range strings.Lines(string(diff.Unified("f", []diff.Chunk{{Old: before, New: after}}))) {
		switch {
		case strings.HasPrefix(line, "--- ") && at == 0, strings.HasPrefix(line, "+++ ") && at == 0:
		case strings.HasPrefix(line, "@@ "):
			_, after, _ := strings.Cut(line, " +")
			start, _, _ := strings.Cut(strings.Fields(after)[0], ",")
			at, _ = strconv.Atoi(start)
		case strings.HasPrefix(line, "+"):
			out = append(out, at)
			at++
		case strings.HasPrefix(line, " "):
			at++
		}
	}
	return slices.Compact(out)
}
