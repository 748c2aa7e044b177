// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// setFilledAside leaves out the findings about values that a later build fills in, such as ${PORT} of Flux, the name _
// where kustomize writes the namespace, or what a patch of a CustomResourceDefinition lacks, and prints one line about
// them.
func (g *checkRun) setFilledAside(found result.Results, objects []gate.Object) result.Results {
	byRef := map[result.ResourceRef][]gate.Object{}
	for _, o := range objects {
		byRef[o.Ref()] = append(byRef[o.Ref()], o)
	}
	var out, filled result.Results
	for _, r := range found {
		if isPatchOfDefinition(r, byRef) || isFilledLater(r, byRef) {
			filled = append(filled, r)
			continue
		}
		out = append(out, r)
	}
	if len(filled) > 0 {
		first := filled[0]
		field, at := "", ""
		if first.Field != nil {
			field = " " + first.Field.Path
		}
		if first.File != nil {
			at = first.File.String() + ": "
		}
		g.printResults(result.Results{{Severity: result.Info, Message: fmt.Sprintf(
			"%s not checked, because a later build fills them in, such as %s%s%s; check the output of that build",
			wereValues(len(filled)), at, first.ResourceRef, field)}})
	}
	return out
}

func wereValues(n int) string {
	if n == 1 {
		return "1 value was"
	}
	return fmt.Sprintf("%d values were", n)
}

// isPatchOfDefinition reports whether a finding is about a CustomResourceDefinition without versions: such files in
// config/crd/patches are patches, also while no kustomization names them.
func isPatchOfDefinition(r result.Result, byRef map[result.ResourceRef][]gate.Object) bool {
	if r.ResourceRef == nil || r.ResourceRef.Kind != "CustomResourceDefinition" {
		return false
	}
	return slices.ContainsFunc(byRef[*r.ResourceRef], func(o gate.Object) bool {
		return workload.ValueAt(o.Value, []any{"spec", "versions"}) == nil && workload.ValueAt(o.Value, []any{"spec", "names"}) == nil
	})
}

// isFilledLater reports whether a finding is about a value that is a placeholder.
func isFilledLater(r result.Result, byRef map[result.ResourceRef][]gate.Object) bool {
	if r.ResourceRef == nil || r.Field == nil {
		return false
	}
	for _, o := range byRef[*r.ResourceRef] {
		value := workload.ValueAt(o.Value, workload.ParseField(r.Field.Path))
		if r.Field.Path == "metadata.name" && value == "_" {
			return true
		}
		text, ok := value.(string)
		if ok && podmap.HasPlaceholder(text) || !ok && quotesPlaceholder(value, r.Message) {
			return true
		}
	}
	return false
}

// quotesPlaceholder reports whether a message about a mapping or list is about a placeholder in it.
func quotesPlaceholder(value any, message string) bool {
	switch value := value.(type) {
	case string:
		return podmap.HasPlaceholder(value) && strings.Contains(message, value)
	case map[string]any:
		for key, v := range value {
			if quotesPlaceholder(key, message) || quotesPlaceholder(v, message) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(v any) bool { return quotesPlaceholder(v, message) })
	}
	return false
}
