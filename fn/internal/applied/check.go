// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
)

// batch are documents that are injected together.
type batch struct {
	name  string
	items []fn.Item
	// policies returns new copies of the policies, with the next version of the sidecars if next is set.
	policies func(next bool) ([]*v1alpha1.InjectionPolicy, error)
}

// Finding is a result that a cluster rejects.
type Finding struct {
	// Case names the batch and the object in it.
	Case string
	// Stage is injected, upgraded or removed.
	Stage string
	// Operation is create, apply or update.
	Operation string
	Problem   string
	// Expected is why that is known; empty where it is a failure.
	Expected string
}

// subject is an object on its way.
type subject struct {
	name string
	// stages are the object as written, injected, upgraded and with the injection removed.
	stages [4]map[string]any
	// reported tells for each stage whether the injection reported an error.
	reported [4]bool
}

var stageNames = [4]string{"written", "injected", "upgraded", "removed"}

// check takes a batch through all stages, and returns what is rejected.
func (r *runner) check(ctx context.Context, b batch) error {
	subjects, err := stagesOf(ctx, b)
	if err != nil {
		r.report.Refused[firstLine(err.Error())]++ // the policy or the documents are reported as a whole
		return nil
	}
	valid, err := r.valid(subjects)
	if err != nil {
		return err
	}
	var requests []request
	var asked []question
	for i, s := range subjects {
		r.report.Objects++
		if reflect.DeepEqual(s.stages[0], s.stages[1]) {
			continue
		}
		r.report.Injected++
		if !valid[i] {
			r.report.Invalid++
			continue
		}
		for _, q := range s.questions() {
			asked = append(asked, q)
			requests = append(requests, q.request())
		}
	}
	answers, err := r.validator.ask(requests)
	if err != nil {
		return err
	}
	r.report.Checks += len(answers)
	r.judgeAll(asked, answers)
	return nil
}

// judgeAll takes the answers in their order: what is rejected as a new object needs no further word about it.
func (r *runner) judgeAll(asked []question, answers []answer) {
	rejected := map[*subject]bool{}
	for i, a := range answers {
		q := asked[i]
		if rejected[q.subject] {
			continue
		}
		r.judge(q, a.Problems)
		rejected[q.subject] = q.operation == "create" && len(a.Problems) > 0
	}
}

// question is about a stage of an object.
type question struct {
	subject   *subject
	operation string
	stage     int
}

func (q question) request() request {
	out := request{Operation: q.operation, Object: q.subject.stages[q.stage]}
	if q.operation == "update" {
		out.Old = q.subject.stages[1]
	}
	return out
}

// questions are those about an object whose stages were all made without an error.
func (s *subject) questions() []question {
	var out []question
	for stage := 1; stage < len(s.stages); stage++ {
		if s.reported[stage] || s.stages[stage] == nil {
			continue
		}
		out = append(out, question{s, "create", stage}, question{s, "apply", stage})
		if stage > 1 && !s.reported[1] {
			out = append(out, question{s, "update", stage})
		}
	}
	return out
}

func (r *runner) judge(q question, problems []problem) {
	for _, p := range problems {
		if q.operation == "apply" && p.Type != "FieldValueDuplicate" {
			continue // fields and types of the user's, of another version of Kubernetes
		}
		f := Finding{
			Case: q.subject.name, Stage: stageNames[q.stage], Operation: q.operation,
			Problem: fmt.Sprintf("%s: %s", p.Field, firstLine(p.Message)),
		}
		f.Expected = expected(q, p)
		r.report.add(f)
	}
}

// expected returns why a rejection is known.
func expected(q question, p problem) string {
	kind, _ := q.subject.stages[0]["kind"].(string)
	if q.operation == "update" && p.Type == "FieldValueImmutable" && (kind == "Job" || kind == "Pod") {
		return "the template of a Job and most of a Pod are immutable"
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > 300 {
		line = line[:300] + "..."
	}
	return line
}

// valid reports of each object whether a cluster accepts it as it was written.
func (r *runner) valid(subjects []*subject) ([]bool, error) {
	var requests []request
	for _, s := range subjects {
		requests = append(requests, request{Operation: "create", Object: s.stages[0]}, request{Operation: "apply", Object: s.stages[0]})
	}
	answers, err := r.validator.ask(requests)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(subjects))
	for i := range subjects {
		create, apply := answers[2*i], answers[2*i+1]
		out[i] = create.Known && len(create.Problems) == 0
		for _, p := range apply.Problems {
			out[i] = out[i] && p.Type != "FieldValueDuplicate"
		}
	}
	return out, nil
}

// stagesOf injects the documents of a batch, injects the result again with the next version, and removes the injection from it.
func stagesOf(ctx context.Context, b batch) ([]*subject, error) {
	first, err := inject(ctx, b, b.items, false, "")
	if err != nil {
		return nil, err
	}
	next, err := inject(ctx, b, first.Items, true, "")
	if err != nil {
		return nil, err
	}
	removed, err := inject(ctx, b, first.Items, false, v1alpha1.ModeRemove)
	if err != nil {
		return nil, err
	}
	var out []*subject
	for i := range b.items {
		made, err := subjectsOf(b.name, i, [4][]fn.Item{b.items, first.Items, next.Items, removed.Items})
		if err != nil {
			return nil, err
		}
		for _, s := range made {
			s.reported = [4]bool{false, reports(first, b.items[i]), reports(next, b.items[i]), reports(removed, b.items[i])}
		}
		out = append(out, made...)
	}
	return out, nil
}

func inject(ctx context.Context, b batch, items []fn.Item, next bool, mode v1alpha1.Mode) (*fn.Report, error) {
	policies, err := b.policies(next)
	if err != nil {
		return nil, err
	}
	if mode != "" {
		for _, p := range policies {
			p.Spec.Mode = mode
		}
	}
	injector, err := fn.New(policies)
	if err != nil {
		return nil, err
	}
	return injector.Run(ctx, items)
}

// reports reports whether a run has an error for a document, or for all of them.
func reports(report *fn.Report, item fn.Item) bool {
	for _, r := range report.Results {
		if r.Severity == result.Error && (r.File == nil || r.File.Path == item.Path && r.File.Index == item.Index) {
			return true
		}
	}
	return false
}

// subjectsOf returns the objects of a document in all stages.
func subjectsOf(name string, i int, stages [4][]fn.Item) ([]*subject, error) {
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
			out[n].stages[stage] = named(object)
		}
	}
	return out, nil
}

// objectsOf returns the objects of a document, or of the list in it.
func objectsOf(item fn.Item) ([]map[string]any, error) {
	if item.Doc.Empty() {
		return nil, nil
	}
	elements, isList, err := item.Doc.Items()
	if err != nil {
		return nil, err
	}
	if !isList {
		object, err := item.Doc.Object()
		return []map[string]any{object}, err
	}
	var out []map[string]any
	for _, element := range elements {
		object, err := element.Object()
		if err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

// named returns an object with a name, which test cases leave out.
func named(object map[string]any) map[string]any {
	metadata, isMap := object["metadata"].(map[string]any)
	if object["metadata"] != nil && !isMap || metadata["name"] != nil || metadata["generateName"] != nil {
		return object
	}
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = "unnamed"
	out := maps.Clone(object)
	out["metadata"] = metadata
	return out
}
