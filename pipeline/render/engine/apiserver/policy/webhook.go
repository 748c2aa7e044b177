// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// MayCall reports whether the API server calls a webhook for a request. What is not known counts as a match.
func (s *Set) MayCall(hook *admissionv1.MutatingWebhook, r *request.Request) bool {
	criteria := &admissionv1.MatchResources{
		NamespaceSelector: hook.NamespaceSelector, ObjectSelector: hook.ObjectSelector, MatchPolicy: hook.MatchPolicy,
	}
	for _, rule := range hook.Rules {
		criteria.ResourceRules = append(criteria.ResourceRules, admissionv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	if len(criteria.ResourceRules) == 0 {
		return false
	}
	defaultResources(criteria)
	matched, _, kind, err := s.matchesRequest(criteria, r)
	if err != nil || !matched || len(hook.MatchConditions) == 0 {
		return matched || err != nil
	}
	compiler, err := cel.NewCompositedCompiler(environmentOf(s.cluster.Minor))
	if err != nil {
		return true
	}
	conditions := make([]cel.ExpressionAccessor, len(hook.MatchConditions))
	for i := range hook.MatchConditions {
		conditions[i] = (*matchconditions.MatchCondition)(&hook.MatchConditions[i])
	}
	filter := compiler.CompileCondition(conditions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	attributes := &admission.VersionedAttributes{Attributes: r.Attributes(), VersionedKind: kind}
	attributes.VersionedObject.Set(r.Object)
	result := matchconditions.NewMatcher(filter, hook.FailurePolicy, "webhook", "admit", hook.Name).
		Match(context.Background(), attributes, nil, unusedAuthorizer{})
	return result.Error != nil || result.Matches
}
