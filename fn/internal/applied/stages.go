// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"context"
	"fmt"
	"slices"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// run is an injection of a batch.
type run struct {
	next bool
	mode v1alpha1.Mode
	// published is what is published already; nil where that is not known.
	published []fn.Item
}

// runInjectionStages runs the documents of a batch through all stages.
func runInjectionStages(ctx context.Context, b batch) ([]*subject, error) {
	minor, err := b.kubernetesMinor()
	if err != nil {
		return nil, err
	}
	edited := changeOwn(b.items)
	runs := [stageCount]run{upgraded: {next: true}, removed: {mode: v1alpha1.ModeRemove}, rebuilt: {next: true}, changed: {next: true}}
	var reports [stageCount]*fn.Report
	items := [stageCount][]fn.Item{written: b.items}
	for stage := injected; stage < stageCount; stage++ {
		from, how := b.items, runs[stage]
		switch stage {
		case upgraded, removed:
			from = items[injected]
		case rebuilt:
			how.published = items[injected]
		case changed:
			from, how.published = edited, items[injected]
		}
		report, err := injectBatchItems(ctx, b, from, how)
		if err != nil {
			return nil, err
		}
		reports[stage], items[stage] = report, report.Items
	}
	var out []*subject
	for i := range b.items {
		made, err := subjectsOf(b.name, i, items)
		if err != nil {
			return nil, err
		}
		for _, s := range made {
			s.minor = minor
			for stage := injected; stage < stageCount; stage++ {
				s.reported[stage] = hasResult(reports[stage], b.items[i], isError)
				s.replaced[stage] = len(made) == 1 && hasResult(reports[stage], b.items[i], isReplacement)
			}
			if edited[i].Doc == b.items[i].Doc {
				s.stages[changed] = nil
			}
		}
		out = append(out, made...)
	}
	return out, nil
}

// kubernetesMinor returns the minor version of Kubernetes that the policies are for, or 0 for the newest.
func (b batch) kubernetesMinor() (int, error) {
	policies, err := b.policies(false)
	if err != nil {
		return 0, err
	}
	for _, p := range policies {
		if p.Spec.Istio == nil || p.Spec.Istio.KubernetesVersion == "" {
			continue
		}
		version, err := utilversion.ParseGeneric(p.Spec.Istio.KubernetesVersion)
		if err != nil {
			return 0, err
		}
		return int(version.Minor()), nil
	}
	return 0, nil
}

func injectBatchItems(ctx context.Context, b batch, items []fn.Item, how run) (*fn.Report, error) {
	policies, err := b.policies(how.next)
	if err != nil {
		return nil, err
	}
	if how.mode != "" {
		for _, p := range policies {
			p.Spec.Mode = how.mode
		}
	}
	injector, err := fn.New(policies)
	if err != nil {
		return nil, err
	}
	if how.published != nil {
		var docs []*manifest.Document
		for _, item := range how.published {
			docs = append(docs, item.Doc)
		}
		injector = injector.WithPublished(docs)
	}
	return injector.Run(ctx, items)
}

// hasResult reports whether a run has a result of a kind for a document, or for all of them.
func hasResult(report *fn.Report, item fn.Item, is func(result.Result) bool) bool {
	return slices.ContainsFunc(report.Results, func(r result.Result) bool {
		return is(r) && (r.File == nil || r.File.Path == item.Path && r.File.Index == item.Index)
	})
}

func isError(r result.Result) bool { return r.Severity == result.Error }

func isReplacement(r result.Result) bool {
	return strings.Contains(r.Message, "must be replaced: its own spec has changed")
}

// changeOwn returns documents in which each Job and Pod has another variable in a container of its own, which no
// update may add.
func changeOwn(items []fn.Item) []fn.Item {
	out := slices.Clone(items)
	for i, item := range items {
		objects, err := objectsOf(item)
		if err != nil || len(objects) != 1 {
			continue
		}
		object := podmap.CopyMap(objects[0])
		if !addVariable(object) {
			continue
		}
		if edited, err := itemOf(object, item.Index); err == nil {
			out[i].Doc = edited.Doc
		}
	}
	return out
}

// addVariable adds a variable to the first container of a Job or Pod, and reports whether it did.
func addVariable(object map[string]any) bool {
	spec, _ := object["spec"].(map[string]any)
	switch object["kind"] {
	case "Pod":
	case "Job":
		template, _ := spec["template"].(map[string]any)
		spec, _ = template["spec"].(map[string]any)
	default:
		return false
	}
	list, _ := spec["containers"].([]any)
	if len(list) == 0 {
		return false
	}
	container, ok := list[0].(map[string]any)
	if !ok {
		return false
	}
	env, _ := container["env"].([]any)
	container["env"] = append(env, map[string]any{"name": "CHANGED_BY_THE_USER", "value": "1"})
	return true
}

// subjectsOf returns the objects of a document in all stages.
func subjectsOf(name string, i int, stages [stageCount][]fn.Item) ([]*subject, error) {
	var out []*subject
	for stage, items := range stages {
		objects, err := objectsOf(items[i])
		if err != nil {
			return nil, err
		}
		if stage == 0 {
			for n := range objects {
				out = append(out, &subject{name: fmt.Sprintf("%s, document %d, object %d", name, i, n)})
			}
		}
		if len(objects) != len(out) {
			return nil, fmt.Errorf("reading the objects of document %d: there are %d, and %d before", i, len(objects), len(out))
		}
		for n, object := range objects {
			out[n].stages[stage] = withObjectName(object)
		}
	}
	return out, nil
}
