// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package updates checks what a result changes of what is published: whether the API server accepts the change of each object. It is
// called with the files of both states, where both are at hand: before something is published, and for reviews.
package updates

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// ObjectChecker checks objects with the code of the API server. A render.Pool does.
type ObjectChecker interface {
	CheckObjects(ctx context.Context, request render.GateRequest) (result.Results, error)
}

// Checker checks updates. The zero value accepts all updates.
type Checker struct {
	// Validator answers with Kubernetes' own validation; nil where its program is not installed.
	Validator gate.Validator
	// Objects checks custom resources and policies; nil checks none.
	Objects ObjectChecker
	// Limits bound the check.
	Limits render.Limits
}

// state is the objects of one side.
type state struct {
	docs    []*manifest.Document
	objects [][]gate.Object // of each document
}

func (s state) all() []gate.Object { return slices.Concat(s.objects...) }

// Check returns what is found about the objects that the files change. gates are those of the pipeline: they name the version of
// Kubernetes, and the severities. source has the definitions and policies that gates name; nil for none. Findings have no file.
func (c Checker) Check(ctx context.Context, gates v1alpha1.Gates, before, after map[string][]byte, source tree.Reader) (result.Results, error) {
	if c.Objects == nil {
		return nil, nil
	}
	changed := differing(before, after)
	old := readState(before, func(name string, _ []byte) bool { return changed[name] })
	now := readState(after, func(name string, _ []byte) bool { return changed[name] })
	now.pair(old)
	if !now.keepUpdates() {
		return nil, nil
	}
	objects := now.all()
	request := requestFor(gates)
	var err error
	if c.Validator != nil {
		validating, cancel := c.bound(ctx)
		request.Options.Validated, err = gate.ValidateUpdates(validating, objects, c.Validator)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("checking changes of what is published: %w", err)
		}
	}
	named, err := namedDefinitions(gates, source)
	if err != nil {
		return nil, fmt.Errorf("checking changes of what is published: %w", err)
	}
	around := readState(after, func(_ string, text []byte) bool { return definesRules(text) })
	if around.hasPolicies() || named.hasPolicies() {
		around = readState(after, func(string, []byte) bool { return true })
	}
	if len(around.docs)+len(named.docs) == 0 && !slices.ContainsFunc(request.Options.Validated, hasFindings) && !anyNotApplied(objects) {
		return nil, nil
	}
	request.Catalog = append(documentsOf(named.docs), documentsOf(around.docs)...)
	request.Documents, request.Old = documentsOf(now.docs), documentsOf(old.docs)
	request.Limits = &c.Limits
	found, err := c.Objects.CheckObjects(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("checking changes of what is published: %w", err)
	}
	for i := range found {
		found[i].File = nil
	}
	return found, nil
}

// differing returns the names of the files that are not the same on both sides.
func differing(before, after map[string][]byte) map[string]bool {
	out := map[string]bool{}
	for _, files := range []map[string][]byte{before, after} {
		for name := range files {
			old, was := before[name]
			now, is := after[name]
			if was != is || !bytes.Equal(old, now) {
				out[name] = true
			}
		}
	}
	return out
}

// readState reads the objects of the files that are wanted. What cannot be read is left out: it is no object.
func readState(files map[string][]byte, wanted func(name string, text []byte) bool) (out state) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !manifest.IsFileName(name) || !wanted(name, files[name]) {
			continue
		}
		file, err := manifest.Parse("", files[name])
		if err != nil {
			continue
		}
		for _, doc := range file.Docs {
			objects, err := gate.ReadDocument(doc, doc, "")
			if err == nil && len(objects) > 0 {
				out.docs, out.objects = append(out.docs, doc), append(out.objects, objects)
			}
		}
	}
	return out
}

// pair sets the old state of the objects.
func (s state) pair(old state) {
	before := old.all()
	for _, objects := range s.objects {
		gate.PairOld(objects, before)
	}
}

// keepUpdates drops the documents without an object that changes, and reports whether any is left.
func (s *state) keepUpdates() bool {
	var kept state
	for i, objects := range s.objects {
		if slices.ContainsFunc(objects, func(o gate.Object) bool { return o.Old != nil }) {
			kept.docs, kept.objects = append(kept.docs, s.docs[i]), append(kept.objects, objects)
		}
	}
	*s = kept
	return len(kept.docs) > 0
}

// definesRules reports whether a file may have definitions or policies.
func definesRules(text []byte) bool {
	return bytes.Contains(text, []byte("CustomResourceDefinition")) || bytes.Contains(text, []byte("ValidatingAdmissionPolicy"))
}

// hasPolicies reports whether policies are among the objects: they may read any others.
func (s state) hasPolicies() bool {
	return slices.ContainsFunc(s.all(), func(o gate.Object) bool { return o.Identity().Kind == "ValidatingAdmissionPolicy" })
}

func hasFindings(v gate.Validated) bool {
	return len(v.Create)+len(v.Update)+len(v.Ignored) > 0 || v.Error != ""
}

func anyNotApplied(objects []gate.Object) bool {
	return slices.ContainsFunc(objects, func(o gate.Object) bool { return o.Old != nil && gate.NotApplied(o.Value) != "" })
}

func documentsOf(docs []*manifest.Document) (out []render.GateDocument) {
	for _, doc := range docs {
		if sent, isWhole := render.NewGateDocument(doc, doc, ""); isWhole {
			out = append(out, sent)
		}
	}
	return out
}

// requestFor returns the request by the gates of a pipeline.
func requestFor(gates v1alpha1.Gates) render.GateRequest {
	request := render.GateRequest{Severities: map[string]string{}, Options: gate.Options{Published: true, UpdatesOnly: true}}
	if schemas := gates.Schemas; schemas != nil {
		request.Options.KubernetesVersion = schemas.KubernetesVersion
		maps.Copy(request.Severities, schemas.Rules)
	}
	admission := gates.Admission
	if admission == nil {
		// Of policies, only rejections of the change are asked for.
		request.Severities[gate.CodeNotEvaluated], request.Severities[gate.CodePolicyAudit] = "Off", "Off"
		return request
	}
	maps.Copy(request.Severities, admission.Rules)
	if admission.KubernetesVersion != "" {
		request.Options.KubernetesVersion = admission.KubernetesVersion
	}
	if admission.User != nil {
		request.Options.User, request.Options.Groups = admission.User.Name, admission.User.Groups
	}
	return request
}

// namedDefinitions reads the definitions and policies of the source that the gates name.
func namedDefinitions(gates v1alpha1.Gates, source tree.Reader) (state, error) {
	if source == nil {
		return state{}, nil
	}
	var names []string
	if gates.Schemas != nil {
		names = append(names, gates.Schemas.CRDs...)
	}
	if gates.Admission != nil {
		names = append(names, gates.Admission.Policies...)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if err := collectFiles(source, name, files); err != nil {
			return state{}, err
		}
	}
	return readState(files, func(string, []byte) bool { return true }), nil
}

// collectFiles reads a file, or the manifests below a directory.
func collectFiles(source tree.Reader, name string, files map[string][]byte) error {
	info, err := source.Lookup(name)
	if err != nil {
		return err
	}
	if !info.Dir {
		files[name], err = source.Read(name)
		return err
	}
	entries, err := source.List(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at, err := source.Lookup(e.Path)
		if err != nil || at.Path != e.Path || !e.Dir && !manifest.IsFileName(e.Path) {
			continue
		}
		if err := collectFiles(source, e.Path, files); err != nil {
			return err
		}
	}
	return nil
}
