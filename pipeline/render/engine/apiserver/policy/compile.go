// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Problem is something that the API server would not take of a policy or a binding.
type Problem struct {
	// Path leads to the field.
	Path    []any
	Message string
}

// variant describes what is known when a policy is evaluated: expressions that read unknown values are skipped.
type variant struct {
	user, namespace bool
	// secret reports whether messages must not show values.
	secret bool
}

// compiled is a policy without the expressions that cannot be evaluated.
type compiled struct {
	matcher   matchconditions.Matcher // nil where all requests are evaluated
	validator validating.Validator
	// validations are the indexes of those that are evaluated.
	validations []int
	// open are the indexes of conditions and of validations that are not.
	openConditions, openValidations []int
}

// environmentOf returns the environment that expressions may use in the API server of a version: only what the
// previous version understands too, since a new server must allow a rollback to the old one.
func environmentOf(minor uint) *environment.EnvSet {
	return environment.MustBaseEnvSet(version.MajorMinor(1, max(minor, 2)-1))
}

func (p *policy) compileVariant(minor uint, v variant) *compiled {
	if c := p.compiled[v]; c != nil {
		return c
	}
	c := &compiled{}
	p.compiled[v] = c
	spec := &p.Spec
	compiler, err := cel.NewCompositedCompiler(environmentOf(minor))
	if err != nil {
		c.validator = validating.NewValidator(nil, nil, nil, nil, spec.FailurePolicy, err)
		return c
	}
	options := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	plain := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil}
	compiler.CompileAndStoreVariables(namedVariableExpressions(spec.Variables), options, environment.StoredExpressions)
	var conditions, validations, messages, annotations []cel.ExpressionAccessor
	for i := range spec.MatchConditions {
		if p.reads.conditions[i].readsUnknownValues(v) {
			c.openConditions = append(c.openConditions, i)
			continue
		}
		conditions = append(conditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	for i, one := range spec.Validations {
		if p.reads.validations[i].readsUnknownValues(v) {
			c.openValidations = append(c.openValidations, i)
			continue
		}
		c.validations = append(c.validations, i)
		validations = append(validations, &validating.ValidationCondition{Expression: one.Expression, Message: one.Message, Reason: one.Reason})
		var message cel.ExpressionAccessor
		if one.MessageExpression != "" && !v.secret && !p.reads.messages[i].readsUnknownValues(v) {
			message = &validating.MessageExpressionCondition{MessageExpression: one.MessageExpression}
		}
		messages = append(messages, message)
	}
	for i, one := range spec.AuditAnnotations {
		if !p.reads.annotations[i].readsUnknownValues(v) {
			annotations = append(annotations, &validating.AuditAnnotationCondition{Key: one.Key, ValueExpression: one.ValueExpression})
		}
	}
	if len(conditions) > 0 {
		filter := compiler.CompileCondition(conditions, options, environment.StoredExpressions)
		c.matcher = matchconditions.NewMatcher(filter, spec.FailurePolicy, "policy", "validate", p.Name)
	}
	c.validator = validating.NewValidator(
		compiler.CompileCondition(validations, options, environment.StoredExpressions), c.matcher,
		compiler.CompileCondition(annotations, options, environment.StoredExpressions),
		compiler.CompileCondition(messages, plain, environment.StoredExpressions), spec.FailurePolicy, nil,
	)
	return c
}

func namedVariableExpressions(list []admissionv1.Variable) []cel.NamedExpressionAccessor {
	out := make([]cel.NamedExpressionAccessor, len(list))
	for i, v := range list {
		out[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	return out
}

// checkPolicyCreation returns what the API server would not take of the policy when it is created: what it lacks, and
// expressions that do not compile (source: validateValidatingAdmissionPolicySpec in
// pkg/apis/admissionregistration/validation of k8s.io/kubernetes).
func (p *policy) checkPolicyCreation(minor uint) []Problem {
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
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		add("validations or auditAnnotations must contain at least one item", "validations")
	}
	compiler, err := cel.NewCompositedCompiler(environmentOf(minor))
	if err != nil {
		add(err.Error())
		return out
	}
	options := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	plain := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil}
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
	for i, v := range spec.Validations {
		compile(&validating.ValidationCondition{Expression: v.Expression}, options, "validations", i, "expression")
		if v.MessageExpression != "" {
			compile(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, plain, "validations", i, "messageExpression")
		}
	}
	for i, a := range spec.AuditAnnotations {
		accessor := &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}
		compile(accessor, options, "auditAnnotations", i, "valueExpression")
	}
	return out
}

func compilationMessage(err error) string {
	var detailed *apiservercel.Error
	if errors.As(err, &detailed) {
		return detailed.Detail
	}
	return err.Error()
}

// checkBinding returns what the API server would not take of a binding when it is created.
func checkBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) []Problem {
	var out []Problem
	add := func(message string, path ...any) {
		out = append(out, Problem{Path: append([]any{"spec"}, path...), Message: message})
	}
	if b.Spec.PolicyName == "" {
		add("policyName is required", "policyName")
	}
	if len(b.Spec.ValidationActions) == 0 {
		add("validationActions is required", "validationActions")
	}
	seen := map[admissionv1.ValidationAction]bool{}
	for i, action := range b.Spec.ValidationActions {
		switch action {
		case admissionv1.Deny, admissionv1.Warn, admissionv1.Audit:
		default:
			add(fmt.Sprintf("%q is not one of Audit, Deny and Warn", action), "validationActions", i)
		}
		seen[action] = true
	}
	if seen[admissionv1.Deny] && seen[admissionv1.Warn] {
		add("Deny and Warn may not be used together", "validationActions")
	}
	return append(out, checkParamRef(b.Spec.ParamRef)...)
}

// checkParamRef returns what the API server would not take of a binding's reference to parameters.
func checkParamRef(ref *admissionv1.ParamRef) []Problem {
	if ref == nil {
		return nil
	}
	path := []any{"spec", "paramRef"}
	var out []Problem
	switch {
	case ref.Name == "" && ref.Selector == nil:
		out = append(out, Problem{Path: path, Message: "one of name or selector must be specified"})
	case ref.Name != "" && ref.Selector != nil:
		out = append(out, Problem{Path: path, Message: "name and selector are mutually exclusive"})
	}
	if ref.ParameterNotFoundAction == nil {
		out = append(out, Problem{Path: append(path, "parameterNotFoundAction"), Message: "parameterNotFoundAction is required"})
	}
	return out
}
