// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
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
	// Stage is injected, upgraded, removed, rebuilt or changed; see [stage].
	Stage string
	// Operation is create, apply or update.
	Operation string
	Problem   string
	// Expected is why that is known; empty where it is a failure.
	Expected string
	// Written and Result are the object before and in the stage.
	Written, Result map[string]any
}

// stage is a step on the way of an object.
type stage int

const (
	written  stage = iota
	injected       // for the first time
	upgraded       // in place, with the next version of the sidecars
	removed        // taken out in place
	rebuilt        // from what is written, with the next version, where the first injection is published
	changed        // the same after the user changed what is immutable in a Job or Pod
	stageCount
)

var stageNames = [stageCount]string{"written", "injected", "upgraded", "removed", "rebuilt", "changed"}

// subject is an object on its way.
type subject struct {
	name string
	// minor is the version of Kubernetes that it was injected for, 0 for the newest.
	minor int
	// stages are the object in each stage, nil where it does not go through it.
	stages [stageCount]map[string]any
	// reported records for each stage whether the injection reported an error, and replaced whether it reported that
	// the object has to be replaced.
	reported, replaced [stageCount]bool
}

// checkBatchStages runs a batch through all stages, and reports what is rejected.
func (r *runner) checkBatchStages(ctx context.Context, b batch) error {
	subjects, err := runInjectionStages(ctx, b)
	if err != nil {
		r.report.Refused[firstLine(err.Error())]++ // the policy or the documents are reported as a whole
		return nil
	}
	valid, err := r.acceptedAsWritten(subjects)
	if err != nil {
		return err
	}
	var requests []request
	var asked []question
	for i, s := range subjects {
		r.report.Objects++
		if reflect.DeepEqual(s.stages[written], s.stages[injected]) {
			continue
		}
		r.report.Injected++
		if !valid[i] {
			r.report.Invalid++
			continue
		}
		for _, q := range s.questionsForStages() {
			asked = append(asked, q)
			requests = append(requests, q.newValidationRequest())
		}
	}
	answers, err := r.validator.sendRequests(requests)
	if err != nil {
		return err
	}
	r.report.Checks += len(answers)
	r.classifyAnswers(asked, answers)
	return nil
}

// classifyAnswers classifies the answers in their order, and skips further ones about an object that is rejected as a
// new one.
func (r *runner) classifyAnswers(asked []question, answers []answer) {
	rejected := map[*subject]bool{}
	for i, a := range answers {
		q := asked[i]
		if rejected[q.subject] {
			continue
		}
		r.classifyProblems(q, a.Problems)
		rejected[q.subject] = q.operation == "create" && len(a.Problems) > 0
		if q.operation == "update" && q.subject.replaced[q.stage] && !slices.ContainsFunc(a.Problems, isImmutable) {
			r.report.add(Finding{
				Case: q.subject.name, Stage: stageNames[q.stage], Operation: q.operation,
				Problem: "the injection reports that the object must be replaced, and the API server accepts the update",
			})
		}
	}
}

// question is about a stage of an object.
type question struct {
	subject   *subject
	operation string
	stage     stage
}

func (q question) newValidationRequest() request {
	out := request{Operation: q.operation, Object: q.subject.stages[q.stage]}
	if q.operation == "update" {
		out.Old = q.subject.stages[injected]
	}
	return out
}

// questionsForStages returns those about an object whose stages were all made without an error.
func (s *subject) questionsForStages() []question {
	var out []question
	for stage := injected; stage < stageCount; stage++ {
		if s.reported[stage] || s.stages[stage] == nil {
			continue
		}
		out = append(out, question{s, "create", stage}, question{s, "apply", stage})
		if stage > injected && !s.reported[injected] && !s.isRecreated() {
			out = append(out, question{s, "update", stage})
		}
	}
	return out
}

// isRecreated reports whether the server makes up the object's name, so that it is created again and never updated.
func (s *subject) isRecreated() bool {
	metadata, _ := s.stages[written]["metadata"].(map[string]any)
	return metadata["name"] == nil && metadata["generateName"] != nil
}

func (r *runner) classifyProblems(q question, problems []problem) {
	for _, p := range problems {
		if q.operation == "apply" && p.Type != "FieldValueDuplicate" {
			continue // fields and types of the user's, of another version of Kubernetes
		}
		f := Finding{
			Case: q.subject.name, Stage: stageNames[q.stage], Operation: q.operation,
			Problem: fmt.Sprintf("%s: %s", p.Field, firstLine(p.Message)),
		}
		f.Expected = expectedRejectionReason(q, p)
		f.Written, f.Result = q.subject.stages[written], q.subject.stages[q.stage]
		r.report.add(f)
	}
}

// expectedRejectionReason returns why a rejection is known: the user has changed what is immutable, and the injection
// reported it; or the injection is taken out of a Job or Pod, for which the user has asked. A new version of the
// sidecars alone changes no published Job or Pod (spec.jobs: KeepPublished).
func expectedRejectionReason(q question, p problem) string {
	kind, _ := q.subject.stages[written]["kind"].(string)
	minor := q.subject.minor
	switch {
	case minor != 0 && minor < 34 && strings.Contains(p.Field, "spec.resources."), minor != 0 && minor < 36 && strings.Contains(p.Field, ".resizePolicy["):
		return "an older Kubernetes, for which it was injected, ignores the field or does not check it"
	case q.operation != "update" || !isImmutable(p) || kind != "Job" && kind != "Pod":
		return ""
	case fn.MayBeReplaced(q.subject.stages[written]):
		return "a Job or Pod with the annotation for replacement is created again"
	case q.stage == removed:
		return "a Job or Pod from which the injection is taken out must be replaced"
	case q.stage == changed && q.subject.replaced[changed]:
		return "a Job or Pod whose own spec has changed must be replaced, as was reported"
	}
	return ""
}

func isImmutable(p problem) bool {
	return p.Type == "FieldValueImmutable" || p.Type == "FieldValueForbidden"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > 300 {
		line = line[:300] + "..."
	}
	return line
}

// acceptedAsWritten reports of each object whether a cluster accepts it as it was written.
func (r *runner) acceptedAsWritten(subjects []*subject) ([]bool, error) {
	var requests []request
	for _, s := range subjects {
		requests = append(requests, request{Operation: "create", Object: s.stages[written]},
			request{Operation: "apply", Object: s.stages[written]})
	}
	answers, err := r.validator.sendRequests(requests)
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

// withObjectName returns an object with a name, which test cases leave out.
func withObjectName(object map[string]any) map[string]any {
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
