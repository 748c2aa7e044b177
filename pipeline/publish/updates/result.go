// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package updates

import (
	"context"
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// CheckResult completes what the renderer has found by spec.gates, and returns all results of a render: those about objects that keep what
// is published are about what they keep, and those of Kubernetes' own validation are added. source has the definitions and policies
// that gates name. Findings that are added have no file.
func (c Checker) CheckResult(ctx context.Context, gates v1alpha1.Gates, response *render.Response, source tree.Reader) (result.Results, error) {
	if gates.Schemas == nil && gates.Admission == nil || c.Objects == nil {
		return response.Results, nil
	}
	kept := keptObjects(response)
	now := readObjects(response.Objects)
	all := now.all()
	var validated []gate.Validated
	var err error
	if c.Validator != nil && gates.Schemas != nil {
		validating, cancel := c.bound(ctx)
		validated, err = gate.Validate(validating, all, c.Validator)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("checking the objects by spec.gates: %w", err)
		}
	}
	request, checked := selectObjects(now, validated, kept)
	if len(request.Documents) == 0 {
		return response.Results, nil
	}
	named, err := namedDefinitions(gates, source)
	if err != nil {
		return nil, fmt.Errorf("checking the objects by spec.gates: %w", err)
	}
	options := requestFor(gates)
	options.Options.UpdatesOnly, options.Options.Validated = false, request.Options.Validated
	options.Options.SkipSchemas, options.Options.SkipAdmission = gates.Schemas == nil, gates.Admission == nil
	if gates.Admission != nil {
		options.Options.PodSecurity = gates.Admission.PodSecurity
	}
	options.Documents, options.Catalog = request.Documents, append(documentsOf(named.docs), documentsOf(now.docs)...)
	options.Limits = &c.Limits
	found, err := c.Objects.CheckObjects(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("checking the objects by spec.gates: %w", err)
	}
	results := slices.DeleteFunc(slices.Clone(response.Results), func(one result.Result) bool {
		_, isGate := gate.Lookup(one.Tags[result.TagCode])
		return isGate && one.ResourceRef != nil && kept[*one.ResourceRef]
	})
	for _, one := range found {
		if one.ResourceRef == nil || !checked[*one.ResourceRef] {
			continue
		}
		code := one.Tags[result.TagCode]
		ofValidation := code == gate.CodeInvalid || code == gate.CodeNotAppliable || code == gate.CodeUnvalidated
		if ofValidation || kept[*one.ResourceRef] {
			one.File = nil
			results = append(results, one)
		}
	}
	return results, nil
}

// bound limits Kubernetes' own validation, which bounds the time of each object only, to the time of a render.
func (c Checker) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Limits.Timeout == 0 {
		return ctx, func() {}
	}
	cause := fmt.Errorf("validating took longer than %s: %w", c.Limits.Timeout, render.ErrTimeout)
	return context.WithTimeoutCause(ctx, c.Limits.Timeout, cause)
}

// keptObjects returns the Jobs and bare Pods that keep what is published of them.
func keptObjects(response *render.Response) map[result.ResourceRef]bool {
	out := map[result.ResourceRef]bool{}
	for _, d := range response.Decisions {
		if d.Action == string(fn.Kept) {
			out[d.Object] = true
		}
	}
	return out
}

// readObjects reads the objects of a render.
func readObjects(objects []render.Object) (out state) {
	for _, o := range objects {
		file, err := manifest.Parse("", o.YAML)
		if err != nil {
			continue
		}
		for _, doc := range file.Docs {
			found, err := gate.ReadDocument(doc, doc, "")
			if err == nil && len(found) > 0 {
				out.docs, out.objects = append(out.docs, doc), append(out.objects, found)
			}
		}
	}
	return out
}

// selectObjects returns a request with the objects that are kept or have problems, and which these are.
func selectObjects(now state, validated []gate.Validated, kept map[result.ResourceRef]bool) (render.GateRequest, map[result.ResourceRef]bool) {
	var request render.GateRequest
	checked := map[result.ResourceRef]bool{}
	at := 0
	for i, objects := range now.objects {
		var answers []gate.Validated
		if validated != nil {
			answers = validated[at : at+len(objects)]
		}
		at += len(objects)
		wanted := slices.ContainsFunc(objects, func(o gate.Object) bool { return kept[o.Ref()] }) ||
			slices.ContainsFunc(answers, func(v gate.Validated) bool { return hasFindings(v) || len(v.Apply) > 0 })
		if !wanted {
			continue
		}
		documents := documentsOf(now.docs[i : i+1])
		if len(documents) == 0 {
			continue
		}
		request.Documents = append(request.Documents, documents...)
		request.Options.Validated = append(request.Options.Validated, answers...)
		for _, o := range objects {
			checked[o.Ref()] = true
		}
	}
	return request, checked
}
