// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// Decision is the verdict of a policy on a request that does not simply pass.
type Decision struct {
	// Action is the resulting action, or empty if it is unknown whether one results.
	Action admissionv1.ValidationAction
	// Message is the API server's own.
	Message string
	// Path leads to the field of the object that the decision is about.
	Path []any
}

// Gap is something that was not evaluated.
type Gap struct {
	// Policy or Binding is where the reason is.
	Policy, Binding string
	// Path is the field in that policy or binding.
	Path string
	// Reason explains the decision.
	Reason string
}

type counted struct {
	n     int
	first string
}

// Gaps returns what was not evaluated, with a sentence on how often.
func (s *Set) Gaps() map[Gap]string {
	out := map[Gap]string{}
	for gap, c := range s.gaps {
		out[gap] = fmt.Sprintf("was not evaluated for %s: %s", c.first, gap.Reason)
		if c.n > 1 {
			out[gap] = fmt.Sprintf("was not evaluated for %d requests, the first of which creates %s: %s", c.n, c.first, gap.Reason)
		}
	}
	return out
}

// ForgetGaps forgets what was not evaluated so far.
func (s *Set) ForgetGaps() { clear(s.gaps) }

func (s *Set) recordPolicyGap(gap Gap, r *request.Request) {
	c := s.gaps[gap]
	if c == nil {
		c = &counted{first: describeRequest(r)}
		s.gaps[gap] = c
	}
	c.n++
}

func describeRequest(r *request.Request) string {
	if r.Of != "" {
		return "the pods of " + r.Of
	}
	name := r.Name
	if r.Namespace != "" && r.Kind.Namespaced {
		name = r.Namespace + "/" + name
	}
	return r.Kind.Kind + " " + name
}

// unpoliced are the resources of the group that the API server asks no policy about, so that none can lock itself in (Dispatch in
// pkg/admission/plugin/policy/generic/plugin.go of k8s.io/apiserver).
var unpoliced = []string{
	"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
}

// Evaluate returns the decisions of the policies on a request.
func (s *Set) Evaluate(ctx context.Context, r *request.Request) []Decision {
	if r.Kind.Group == Group && slices.Contains(unpoliced, r.Kind.Resource) {
		return nil
	}
	var out []Decision
	for _, name := range slices.Sorted(maps.Keys(s.policies)) {
		p := s.policies[name]
		matched, resource, kind, err := s.matchesRequest(p.Spec.MatchConstraints, r)
		switch {
		case errors.Is(err, errUnknownNamespace):
			s.recordPolicyGap(Gap{Policy: name, Path: "spec.matchConstraints.namespaceSelector", Reason: unknownLabels(r)}, r)
			continue
		case err != nil:
			out = append(out, p.misconfiguredPolicyDecisions(nil, err)...)
			continue
		case !matched:
			continue
		}
		for _, b := range s.bindings {
			if b.Spec.PolicyName == name {
				out = append(out, s.evaluateBinding(ctx, p, b, r, resource, kind)...)
			}
		}
	}
	return out
}

func unknownLabels(r *request.Request) string {
	return "the labels of namespace " + r.Namespace + " are not known, add the Namespace to the objects or to --policies"
}

func (s *Set) evaluateBinding(
	ctx context.Context, p *policy, b *admissionv1.ValidatingAdmissionPolicyBinding, r *request.Request,
	resource schema.GroupVersionResource, kind schema.GroupVersionKind,
) []Decision {
	matched, _, _, err := s.matchesRequest(b.Spec.MatchResources, r)
	switch {
	case errors.Is(err, errUnknownNamespace):
		s.recordPolicyGap(Gap{Binding: b.Name, Path: "spec.matchResources.namespaceSelector", Reason: unknownLabels(r)}, r)
		return nil
	case err != nil:
		return p.misconfiguredPolicyDecisions(b, err)
	case !matched:
		return nil
	}
	params, err := s.parametersForBinding(p, b, r)
	if err != nil {
		return p.misconfiguredPolicyDecisions(b, err)
	}
	var out []Decision
	for _, param := range params {
		e := evaluation{set: s, policy: p, binding: b, request: r, resource: resource, kind: kind, param: param}
		out = append(out, e.evaluateRequest(ctx)...)
	}
	return out
}

// misconfiguredPolicyDecisions returns what follows where a policy cannot be configured.
func (p *policy) misconfiguredPolicyDecisions(b *admissionv1.ValidatingAdmissionPolicyBinding, err error) []Decision {
	if *p.Spec.FailurePolicy == admissionv1.Ignore {
		return nil
	}
	if b == nil {
		message := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: failed to configure policy: %v", p.Name, err)
		return []Decision{{Action: admissionv1.Deny, Message: message}}
	}
	return []Decision{{Action: admissionv1.Deny, Message: p.denialMessage(b, "failed to configure binding: "+err.Error())}}
}

func (p *policy) denialMessage(b *admissionv1.ValidatingAdmissionPolicyBinding, message string) string {
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", p.Name, b.Name, message)
}

// evaluation is of one policy, binding and parameter for one request.
type evaluation struct {
	set      *Set
	policy   *policy
	binding  *admissionv1.ValidatingAdmissionPolicyBinding
	request  *request.Request
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
	param    runtime.Object
}

func (e evaluation) evaluateRequest(ctx context.Context) []Decision {
	s, p, r := e.set, e.policy, e.request
	attributes, err := s.convertRequestObject(r, e.kind)
	if err != nil {
		s.recordPolicyGap(Gap{Policy: p.Name, Path: "spec.matchConstraints", Reason: err.Error()}, r)
		return nil
	}
	namespace, known := s.namespaceOf(r)
	v := variant{user: r.User != nil, namespace: known, secret: isSecret(r.Kind.GroupVersionKind)}
	if e.param != nil {
		v.secret = v.secret || isSecret(e.param.GetObjectKind().GroupVersionKind())
	}
	c := p.compileVariant(s.cluster.Minor, v)
	if len(c.openValidations) > 0 && (c.matcher == nil || c.matcher.Match(ctx, attributes, e.param, unusedAuthorizer{}).Matches) {
		for _, i := range c.openValidations {
			s.recordPolicyGap(Gap{Policy: p.Name, Path: fmt.Sprintf("spec.validations[%d].expression", i), Reason: p.reads.validations[i].describeUnknownReads(v)}, r)
		}
	}
	result := c.validator.Validate(ctx, e.resource, attributes, e.param, namespace, celconfig.RuntimeCELCostBudget, unusedAuthorizer{})
	var out []Decision
	for i, d := range result.Decisions {
		if d.Action != validating.ActionDeny {
			continue
		}
		message := d.Message
		var path []any
		if i < len(c.validations) {
			path = p.reads.validations[c.validations[i]].commonFieldPath()
		}
		if v.secret && d.Evaluation == validating.EvalError {
			message = "an expression resulted in an error, which is not shown as it may hold secret values"
		}
		out = append(out, e.failedValidationDecisions(message, path)...)
	}
	for _, a := range result.AuditAnnotations {
		if a.Action == validating.AuditAnnotationActionError {
			out = append(out, Decision{Action: admissionv1.Deny, Message: p.denialMessage(e.binding, e.hideSecretMessage(v, a.Error))})
		}
	}
	if len(c.openConditions) > 0 {
		return e.unevaluatedConditionDecisions(out, c.openConditions, v)
	}
	return out
}

func (e evaluation) hideSecretMessage(v variant, message string) string {
	if v.secret {
		return "an audit annotation resulted in an error"
	}
	return message
}

// failedValidationDecisions returns what the binding makes of a failed validation.
func (e evaluation) failedValidationDecisions(message string, path []any) []Decision {
	var out []Decision
	for _, action := range e.binding.Spec.ValidationActions {
		text := e.policy.denialMessage(e.binding, message)
		if action == admissionv1.Warn {
			text = fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", e.policy.Name, e.binding.Name, message)
		}
		if action == admissionv1.Audit {
			if len(e.binding.Spec.ValidationActions) > 1 {
				continue // already covered by the other action
			}
			text = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' notes in the audit log: %s", e.policy.Name, e.binding.Name, message)
		}
		out = append(out, Decision{Action: action, Message: text, Path: path})
	}
	return out
}

// unevaluatedConditionDecisions are decisions of a policy with conditions that cannot be evaluated: they hold unless
// one of those excepts the request.
func (e evaluation) unevaluatedConditionDecisions(decisions []Decision, conditions []int, v variant) []Decision {
	var names, reasons []string
	for _, i := range conditions {
		names = append(names, e.policy.Spec.MatchConditions[i].Name)
		reasons = append(reasons, e.policy.reads.conditions[i].describeUnknownReads(v))
	}
	slices.Sort(reasons)
	for i := range decisions {
		decisions[i].Action = ""
		decisions[i].Message += fmt.Sprintf(" (unless the matchConditions %s except it, which were not evaluated: %s)",
			strings.Join(names, ", "), strings.Join(slices.Compact(reasons), "; "))
	}
	slices.SortStableFunc(decisions, func(a, b Decision) int { return cmp.Compare(a.Message, b.Message) })
	return slices.CompactFunc(decisions, func(a, b Decision) bool { return a.Message == b.Message })
}

// describeUnknownReads describes which of the values that an expression reads are unknown.
func (r read) describeUnknownReads(v variant) string {
	var out []string
	if r.authorizer {
		out = append(out, "the expression asks the cluster's authorizer")
	}
	if r.user && !v.user {
		out = append(out, "the expression reads request.userInfo, which --as sets")
	}
	if r.namespace && !v.namespace {
		out = append(out, "the expression reads namespaceObject, and the Namespace is neither among the objects nor in --policies")
	}
	return strings.Join(out, ", and ")
}

// unusedAuthorizer is an authorizer for expressions that never call it.
type unusedAuthorizer struct{}

// Authorize has no opinion.
func (unusedAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", nil
}
