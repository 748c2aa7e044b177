// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// MutatingSet is the MutatingAdmissionPolicies and their bindings of a cluster. It must not be used by two goroutines
// at once.
type MutatingSet struct {
	set        *Set
	policies   map[string]*mutatingPolicy
	bindings   []*admissionv1.MutatingAdmissionPolicyBinding
	dispatcher generic.Dispatcher[mutating.PolicyHook]
	objects    objectInterfaces
	defaulter  *sparingDefaulter
}

// mutatingPolicy is one that may be evaluated.
type mutatingPolicy struct {
	*admissionv1.MutatingAdmissionPolicy

	reads     read // of all of its expressions
	evaluator mutating.PolicyEvaluator
}

// NewMutatingSet returns an empty set for the cluster of another set. defaulter sets the defaults of a typed object.
func NewMutatingSet(set *Set, defaulter Defaulter) *MutatingSet {
	sparing := &sparingDefaulter{Defaulter: defaulter}
	return &MutatingSet{
		set: set, policies: map[string]*mutatingPolicy{}, defaulter: sparing,
		dispatcher: mutating.NewDispatcher(unusedAuthorizer{}, set.matcher, &typeConverters{}),
		objects:    newObjectInterfaces(set.resource, sparing),
	}
}

// IsMutatingBinding reports whether the kind binds a MutatingAdmissionPolicy.
func IsMutatingBinding(k schema.GroupVersionKind) bool {
	return k.Group == Group && k.Kind == "MutatingAdmissionPolicyBinding"
}

// Empty reports whether the set cannot change any object.
func (s *MutatingSet) Empty() bool {
	return s == nil || len(s.policies) == 0 || len(s.bindings) == 0
}

// Several reports whether several policies, bindings or parameters of a binding may apply, so that their order may count.
func (s *MutatingSet) Several() bool {
	return s != nil && (len(s.bindings) > 1 || len(s.bindings) == 1 && s.bindings[0].Spec.ParamRef != nil && s.bindings[0].Spec.ParamRef.Selector != nil)
}

// Without returns the set without a policy.
func (s *MutatingSet) Without(policy string) *MutatingSet {
	out := *s
	out.policies = maps.Clone(s.policies)
	delete(out.policies, policy)
	return &out
}

// Reinvokes reports whether a policy may change a pod in the second round too.
func (s *MutatingSet) Reinvokes() bool {
	if s == nil {
		return false
	}
	for _, p := range s.policies {
		if p.Spec.ReinvocationPolicy == admissionv1.IfNeededReinvocationPolicy {
			return true
		}
	}
	return false
}

// AddPolicy adds a policy, replacing one of the same name. A policy that the API server would reject is not added;
// the problems explain why.
func (s *MutatingSet) AddPolicy(object map[string]any) []Problem {
	var read admissionv1.MutatingAdmissionPolicy
	if err := decodeAnyVersion(object, &read); err != nil {
		return []Problem{{Message: err.Error()}}
	}
	delete(s.policies, read.Name)
	spec := &read.Spec
	if spec.FailurePolicy == nil {
		fail := admissionv1.Fail
		spec.FailurePolicy = &fail
	}
	spec.ReinvocationPolicy = cmp.Or(spec.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	defaultResources(spec.MatchConstraints)
	p := &mutatingPolicy{MutatingAdmissionPolicy: &read}
	problems := p.checkCreation(s.set.cluster.Minor)
	if len(problems) == 0 {
		problems = p.findReads(s.set.cluster.Minor)
	}
	if len(problems) == 0 {
		p.evaluator, problems = p.compile(s.set.cluster.Minor, s.objects.fresh)
	}
	if len(problems) == 0 {
		s.policies[read.Name] = p
	}
	return problems
}

// AddBinding adds a binding, in the place of one of the same name.
func (s *MutatingSet) AddBinding(object map[string]any) []Problem {
	var read admissionv1.MutatingAdmissionPolicyBinding
	if err := decodeAnyVersion(object, &read); err != nil {
		return []Problem{{Message: err.Error()}}
	}
	defaultResources(read.Spec.MatchResources)
	s.bindings = slices.DeleteFunc(s.bindings, func(b *admissionv1.MutatingAdmissionPolicyBinding) bool { return b.Name == read.Name })
	var problems []Problem
	if read.Spec.PolicyName == "" {
		problems = append(problems, Problem{Path: []any{"spec", "policyName"}, Message: "policyName is required"})
	}
	problems = append(problems, checkParamRef(read.Spec.ParamRef)...)
	if len(problems) == 0 {
		s.bindings = append(s.bindings, &read)
		slices.SortFunc(s.bindings, func(a, b *admissionv1.MutatingAdmissionPolicyBinding) int { return cmp.Compare(a.Name, b.Name) })
	}
	return problems
}

// Unbound returns the names of policies that bindings name and that are not in the set, with those of the bindings.
func (s *MutatingSet) Unbound() map[string]string {
	out := map[string]string{}
	for _, b := range s.bindings {
		if s.policies[b.Spec.PolicyName] == nil {
			out[b.Name] = b.Spec.PolicyName
		}
	}
	return out
}

// names returns the names of the policies in their order.
func (s *MutatingSet) names() []string { return slices.Sorted(maps.Keys(s.policies)) }

// mutationExpression returns the expression of a mutation, with the field that has it.
func mutationExpression(m admissionv1.Mutation) (expression, field string) {
	switch {
	case m.PatchType == admissionv1.PatchTypeJSONPatch && m.JSONPatch != nil:
		return m.JSONPatch.Expression, "jsonPatch"
	case m.PatchType == admissionv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
		return m.ApplyConfiguration.Expression, "applyConfiguration"
	}
	return "", ""
}

// findReads notes what the expressions of the policy read.
func (p *mutatingPolicy) findReads(minor uint) []Problem {
	env, err := environmentOf(minor).Env(environment.StoredExpressions)
	if err != nil {
		return []Problem{{Message: err.Error()}}
	}
	var problems []Problem
	known := map[string]read{}
	add := func(text string, path ...any) read {
		r, err := readOf(env, text, known)
		if err != nil {
			problems = append(problems, Problem{Path: append([]any{"spec"}, path...), Message: err.Error()})
		}
		p.reads.mergeReads(r)
		return r
	}
	for i, v := range p.Spec.Variables {
		known[v.Name] = add(v.Expression, "variables", i, "expression")
	}
	for i, c := range p.Spec.MatchConditions {
		add(c.Expression, "matchConditions", i, "expression")
	}
	for i, m := range p.Spec.Mutations {
		text, field := mutationExpression(m)
		add(text, "mutations", i, field, "expression")
	}
	return problems
}

// compile compiles the policy as the API server does (source: compilePolicy in
// pkg/admission/plugin/policy/mutating/compilation.go of k8s.io/apiserver).
func (p *mutatingPolicy) compile(minor uint, fresh *freshPod) (mutating.PolicyEvaluator, []Problem) {
	spec := &p.Spec
	compiler, err := cel.NewCompositedCompiler(environmentOf(minor))
	if err != nil {
		return mutating.PolicyEvaluator{}, []Problem{{Message: err.Error()}}
	}
	options := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	compiler.CompileAndStoreVariables(namedVariableExpressions(spec.Variables), options, environment.StoredExpressions)
	out := mutating.PolicyEvaluator{CompositedCompiler: compiler}
	if len(spec.MatchConditions) > 0 {
		conditions := make([]cel.ExpressionAccessor, len(spec.MatchConditions))
		for i := range spec.MatchConditions {
			conditions[i] = (*matchconditions.MatchCondition)(&spec.MatchConditions[i])
		}
		filter := compiler.CompileCondition(conditions, options, environment.StoredExpressions)
		out.Matcher = matchconditions.NewMatcher(filter, spec.FailurePolicy, "policy", "validate", p.Name)
	}
	options.HasPatchTypes = true
	for _, m := range spec.Mutations {
		switch text, field := mutationExpression(m); field {
		case "jsonPatch":
			compiled := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: text}, options, environment.StoredExpressions)
			out.Mutators = append(out.Mutators, newJSONPatcher(compiled, fresh))
		case "applyConfiguration":
			compiled := compiler.CompileMutatingEvaluator(&patch.ApplyConfigurationCondition{Expression: text}, options, environment.StoredExpressions)
			out.Mutators = append(out.Mutators, newApplyPatcher(compiled, fresh))
		}
	}
	return out, nil
}

// checkCreation returns what the API server would not take of the policy when it is created (source:
// validateMutatingAdmissionPolicySpec in pkg/apis/admissionregistration/validation of k8s.io/kubernetes).
func (p *mutatingPolicy) checkCreation(minor uint) []Problem {
	spec := &p.Spec
	var out []Problem
	add := func(message string, path ...any) {
		out = append(out, Problem{Path: append([]any{"spec"}, path...), Message: message})
	}
	if spec.MatchConstraints == nil {
		add("matchConstraints is required", "matchConstraints")
	} else if len(spec.MatchConstraints.ResourceRules) == 0 {
		add("resourceRules is required", "matchConstraints", "resourceRules")
	}
	if len(spec.Mutations) == 0 {
		add("mutations must contain at least one item", "mutations")
	}
	compiler, err := cel.NewCompositedCompiler(environmentOf(minor))
	if err != nil {
		add(err.Error())
		return out
	}
	options := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	compile := func(e cel.ExpressionAccessor, options cel.OptionalVariableDeclarations, path ...any) {
		if err := compiler.CompileCELExpression(e, options, environment.NewExpressions).Error; err != nil {
			add("compilation failed: "+compilationMessage(err), path...)
		}
	}
	for i, v := range spec.Variables {
		accessor := &validating.Variable{Name: v.Name, Expression: v.Expression}
		if err := compiler.CompileAndStoreVariable(accessor, options, environment.NewExpressions).Error; err != nil {
			add("compilation failed: "+compilationMessage(err), "variables", i, "expression")
		}
	}
	for i := range spec.MatchConditions {
		compile((*matchconditions.MatchCondition)(&spec.MatchConditions[i]), options, "matchConditions", i, "expression")
	}
	options.HasPatchTypes = true
	for i, m := range spec.Mutations {
		switch text, field := mutationExpression(m); field {
		case "jsonPatch":
			compile(&patch.JSONPatchCondition{Expression: text}, options, "mutations", i, field, "expression")
		case "applyConfiguration":
			compile(&patch.ApplyConfigurationCondition{Expression: text}, options, "mutations", i, field, "expression")
		default:
			add(fmt.Sprintf("patchType %q needs the field of its name", m.PatchType), "mutations", i, "patchType")
		}
	}
	return out
}
