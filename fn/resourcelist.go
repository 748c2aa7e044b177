// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// ErrResults is the error of Execute if an error is among the results. The ResourceList was written, and each error
// was written to standard error.
var ErrResults = errors.New("the injection failed")

// Execute is the KRM function: it reads a ResourceList from in, applies the InjectionPolicy that is its functionConfig, and
// writes the ResourceList to out with the results. It writes a ResourceList in every case, as kustomize deletes
// everything if the output is empty, and reports unreadable output as an error of its own, which hides the cause.
// Warnings and errors also go to stderr, one line each, as kustomize shows only those.
//
// Source: KRM Functions Specification v1.
func Execute(ctx context.Context, in io.Reader, out, stderr io.Writer) error {
	src, err := readAll(in)
	if err != nil {
		return refuseInput(out, stderr, fmt.Errorf("reading standard input: %w", err))
	}
	list, err := manifest.ParseResourceList(src)
	if err != nil {
		return refuseInput(out, stderr, err)
	}
	changes := manifest.NewChanges(len(list.Items))
	report, err := runList(ctx, list, changes)
	if err != nil {
		report, changes = &Report{Results: result.Results{{Severity: result.Error, Message: err.Error()}}}, manifest.NewChanges(len(list.Items))
	}
	results := append(list.Results[:len(list.Results):len(list.Results)], report.Results...)
	if err := writeList(out, list, changes, report, results); err != nil {
		return fmt.Errorf("writing the ResourceList: %w", err)
	}
	printProblems(stderr, report.Results)
	if report.Failed() {
		return ErrResults
	}
	return nil
}

// writeList writes the list with what changed in it, without the items that the report empties, and with those that it adds.
func writeList(out io.Writer, list *manifest.ResourceList, changes *manifest.Changes, report *Report, results result.Results) error {
	gone := func(i int) bool {
		return i < len(report.Items) && report.Items[i].Doc.Empty() && !list.Items[i].Empty()
	}
	if len(report.Added) == 0 && !slices.ContainsFunc(report.Items, func(item Item) bool { return gone(item.Index) }) {
		return list.WriteChanges(out, changes, results)
	}
	var docs []*manifest.Document
	for i, doc := range list.Items {
		if !gone(i) {
			docs = append(docs, changes.Or(i, doc))
		}
	}
	return list.Write(out, append(docs, report.Added...), results)
}

// runList applies the functionConfig to the items.
func runList(ctx context.Context, list *manifest.ResourceList, changes *manifest.Changes) (*Report, error) {
	if list.FunctionConfig == nil {
		return nil, fmt.Errorf("reading functionConfig: there is none; name an InjectionPolicy as the function's configuration")
	}
	obj, err := list.FunctionConfig.Object()
	if err != nil {
		return nil, fmt.Errorf("reading functionConfig: %w", err)
	}
	policy, err := v1alpha1.FromObject(obj)
	if err != nil {
		return nil, fmt.Errorf("reading functionConfig: %w", err)
	}
	injector, err := New([]*v1alpha1.InjectionPolicy{policy})
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(list.Items))
	for i, doc := range list.Items {
		items[i] = Item{Doc: doc, Index: i}
	}
	report, err := injector.RunEach(ctx, items, changes.Put)
	if report != nil {
		report.Results = lint.JoinMesh(report.Results)
	}
	return report, err
}

// refuseInput writes an empty ResourceList with the error, for input that is none itself.
func refuseInput(out, stderr io.Writer, err error) error {
	results := result.Results{{Severity: result.Error, Message: err.Error()}}
	list, parseErr := manifest.ParseResourceList([]byte("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"))
	if parseErr != nil {
		return errors.Join(err, parseErr)
	}
	if _, err := out.Write(list.Bytes(nil, results)); err != nil {
		return fmt.Errorf("writing the ResourceList: %w", err)
	}
	printProblems(stderr, results)
	return ErrResults
}

// printProblems writes warnings and errors, one line each.
func printProblems(w io.Writer, results result.Results) {
	b := bufio.NewWriter(w)
	defer b.Flush()
	for _, r := range results {
		if r.Severity == result.Error || r.Severity == result.Warning {
			fmt.Fprintln(b, r)
		}
	}
}

// readAll reads everything, into one piece of memory where the size of the input is known.
func readAll(in io.Reader) ([]byte, error) {
	var buf bytes.Buffer
	if sized, ok := in.(interface{ Len() int }); ok {
		buf.Grow(sized.Len() + bytes.MinRead)
	}
	_, err := buf.ReadFrom(in)
	return buf.Bytes(), err
}
