// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
)

// Rule is one thing that is checked. Its code never changes its meaning.
type Rule struct {
	Code string
	// Title describes the problem in a few words.
	Title string
	// Severity is the default; a policy or a flag can set another one.
	Severity result.Severity
	// Why describes the consequences, and Change how to fix it.
	Why, Change string
}

// The codes of the rules.
const (
	CodeUnknownField      = "schema-unknown-field"
	CodeWrongType         = "schema-wrong-type"
	CodeRequired          = "schema-required"
	CodeWrongValue        = "schema-wrong-value"
	CodeMetadata          = "schema-metadata"
	CodeUnservedKind      = "schema-unserved-kind"
	CodeUndescribedKind   = "schema-undescribed-kind"
	CodeCustomRule        = "schema-custom-rule"
	CodeInvalidDefinition = "schema-invalid-definition"

	CodeInvalid      = "validation-invalid"
	CodeNotAppliable = "validation-apply"
	CodeUnvalidated  = "validation-not-checked"

	CodeUpdateRejected = "update-rejected"
	CodeUpdateReplaced = "update-replaced"
	CodeUpdateIgnored  = "update-ignored"
	CodeUpdateDeletes  = "update-deletes"

	CodeInjectionAltered = "injection-altered"

	CodeRejected        = "admission-rejected"
	CodeWrittenAgain    = "admission-written-again"
	CodePolicyDenied    = "policy-denied"
	CodePolicyWarning   = "policy-warning"
	CodePolicyAudit     = "policy-audit"
	CodeNotEvaluated    = "policy-not-evaluated"
	CodeInvalidPolicy   = "policy-invalid"
	CodePolicyTypes     = "policy-types"
	CodeSecurityEnforce = "pod-security-enforce"
	CodeSecurityWarn    = "pod-security-warn"
	CodeSecurityAudit   = "pod-security-audit"
	CodeSecurityLabels  = "pod-security-labels"
)

var rules = []Rule{
	{
		CodeUnknownField, "A field that the kind does not have", result.Error,
		"The API server refuses it where fields are validated strictly, as kubectl asks for, and drops it silently elsewhere.",
		"Correct the name, or move the field to where it belongs; --kubernetes-version selects the version.",
	},
	{
		CodeWrongType, "A value of a wrong type", result.Error,
		"The API server cannot decode the object and refuses it.",
		"Write a value of the type that the message names; text such as yes, 1 or 1e3 must be quoted to stay text.",
	},
	{
		CodeRequired, "A required field is missing", result.Error,
		"The API server refuses the object.",
		"Add the field.",
	},
	{
		CodeWrongValue, "A value that is not allowed", result.Error,
		"The API server refuses the object.",
		"Write one of the values that the message allows.",
	},
	{
		CodeMetadata, "A name, label or annotation that is not valid", result.Error,
		"The API server refuses the object.",
		"Correct the metadata as the message describes.",
	},
	{
		CodeUnservedKind, "A kind that the version of Kubernetes does not have", result.Error,
		"The API server does not know the kind, so that the object cannot be applied.",
		"Use the apiVersion that the cluster serves.",
	},
	{
		CodeUndescribedKind, "A custom resource without its definition", result.Warning,
		"No schema describes it, so only its metadata was checked.",
		"Add its CustomResourceDefinition to the objects, or to a directory that --crds names.",
	},
	{
		CodeCustomRule, "A custom resource breaks a rule of its definition", result.Error,
		"The API server evaluates the x-kubernetes-validations of the definition, and refuses the object.",
		"Change the object as the message describes.",
	},
	{
		CodeInvalidDefinition, "A CustomResourceDefinition that is not valid", result.Error,
		"The API server refuses the definition, or does not serve its kind.",
		"Correct the definition.",
	},
	{
		CodeInvalid, "Kubernetes' own validation rejects it", result.Error,
		"The API server rejects the object.",
		"Change the field as the message describes.",
	},
	{
		CodeNotAppliable, "Server-side apply rejects it", result.Warning,
		"Flux, and kubectl and Argo CD with server-side apply, cannot apply the object; other ways of applying it keep one of the entries.",
		"Leave one entry of each key.",
	},
	{
		CodeUnvalidated, "Kubernetes' own validation could not check it", result.Warning,
		"The cluster may reject the object.",
		"Follow the message; if the validation failed by itself, report the object as a bug of Prerig.",
	},
	{
		CodeUpdateRejected, "A change that the API server rejects", result.Error,
		"The field cannot change in an object that exists, or a rule of the definition forbids the change. Flux and Argo CD then apply none of the objects beside it.",
		"Take the change back, rename the object, delete it first, or let it be replaced: " + fn.HowToReplace + ".",
	},
	{
		CodeUpdateReplaced, "An object that is deleted and created again", result.Info,
		"The API server rejects the change, and an annotation of the object has Flux or Argo CD replace it. What belongs to the old object is lost.",
		"No change is necessary if that is intended; otherwise remove the annotation and take the change back.",
	},
	{
		CodeUpdateIgnored, "A change without effect", result.Warning,
		"The API server accepts the object and keeps the old value, so that the cluster differs from the file.",
		"Keep the old value in the file, or delete the object first.",
	},
	{
		CodeUpdateDeletes, "A deletion that also deletes other objects or data", result.Warning,
		"With a Namespace everything in it is deleted, with a CustomResourceDefinition every object of its kind, and with a claim or volume maybe the data.",
		"Keep the object, or exclude it from pruning, unless that is meant.",
	},
	{
		CodeInjectionAltered, "An injected pod that is not as the injection recorded it", result.Error,
		"The proxy of such a pod lacks its volumes, runs another image, or does not start; the API server may accept the pod all the same.",
		"Inject the output of the build instead of its bases, or patch by the names of containers and volumes instead of their positions.",
	},
	{
		CodeRejected, "An admission plugin or mutating policy rejects the pod", result.Error,
		"The API server refuses the pod; a workload has no pods then.",
		"Change the pod, or the object of the cluster that the message names.",
	},
	{
		CodeWrittenAgain, "A mutating policy changes a pod again that has its changes already", result.Error,
		"The pod that runs is not the one that was reviewed; a policy that adds to a list adds its element twice.",
		"Change the policy so that it leaves pods with its changes alone, or set Predict instead of Write in spec.admission.steps.",
	},
	{
		CodePolicyDenied, "A ValidatingAdmissionPolicy denies it", result.Error,
		"The API server refuses the object, or the pods that a controller makes of it.",
		"Change the object as the message of the policy describes.",
	},
	{
		CodePolicyWarning, "A ValidatingAdmissionPolicy warns of it", result.Warning,
		"The API server accepts the object and warns the client that applies it.",
		"Change the object as the message of the policy describes.",
	},
	{
		CodePolicyAudit, "A ValidatingAdmissionPolicy notes it", result.Info,
		"The API server accepts the object and records the violation in its audit log.",
		"Change the object as the message of the policy describes.",
	},
	{
		CodeNotEvaluated, "An admission policy that cannot be evaluated here", result.Warning,
		"The policy was not evaluated: the cluster may refuse the object.",
		"Supply what the message names: Namespaces and parameters in a directory that --policies names, the user that applies the objects with --as.",
	},
	{
		CodeInvalidPolicy, "An admission policy or binding that is not valid", result.Error,
		"The API server refuses the policy, so that it is not evaluated.",
		"Correct the policy; --kubernetes-version selects the version whose functions its expressions may use.",
	},
	{
		CodePolicyTypes, "An admission policy reads what its kinds do not have", result.Warning,
		"The API server accepts the policy and reports this in its status; the expression fails when it is evaluated.",
		"Correct the name of the field, or test for it with has().",
	},
	{
		CodeSecurityEnforce, "A pod violates the enforced Pod Security level", result.Error,
		"The API server refuses the pod; a workload has no pods then.",
		"Set the security context as the message describes, or choose another level for the namespace.",
	},
	{
		CodeSecurityWarn, "A pod violates the Pod Security level that is warned of", result.Warning,
		"The API server accepts the pod and warns the client that applies it.",
		"Set the security context as the message describes.",
	},
	{
		CodeSecurityAudit, "A pod violates the Pod Security level that is noted", result.Info,
		"The API server accepts the pod and records the violation in its audit log.",
		"Set the security context as the message describes.",
	},
	{
		CodeSecurityLabels, "A Pod Security label that is not valid", result.Error,
		"The API server refuses the Namespace.",
		"Use the levels privileged, baseline and restricted, and versions such as v1.34 or latest.",
	},
}

// Rules returns all rules.
func Rules() []Rule { return slices.Clone(rules) }

// Lookup finds a rule by its code.
func Lookup(code string) (Rule, bool) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Code == code })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// Severities maps rules to severities. The zero value keeps every rule at its default.
type Severities struct{ rule map[string]result.Severity }

// NewSeverities reads a map of codes to Error, Warning, Info or Off. A code or a word that does not exist is an error: a typo must not
// switch a check off.
func NewSeverities(byCode map[string]string) (Severities, error) {
	s := Severities{rule: map[string]result.Severity{}}
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		if _, ok := Lookup(code); !ok {
			var known []string
			for _, r := range rules {
				known = append(known, r.Code)
			}
			return Severities{}, fmt.Errorf("reading the severity of rule %q: there is no such rule%s", code, strict.DidYouMean(code, known))
		}
		level, err := result.ParseSeverity(byCode[code])
		if err != nil {
			return Severities{}, fmt.Errorf("reading the severity of rule %s: %w", code, err)
		}
		s.rule[code] = level
	}
	return s, nil
}

// Of returns the severity of a rule; empty where it is off.
func (s Severities) Of(code string) result.Severity {
	if level, ok := s.rule[code]; ok {
		return level
	}
	r, _ := Lookup(code)
	return r.Severity
}

// JoinUndescribed makes one finding of those about a kind that no definition describes: it is not about an object.
func JoinUndescribed(found result.Results) result.Results {
	for i, r := range found {
		if r.Tags[result.TagCode] == CodeUndescribedKind {
			found[i].Tags = maps.Clone(r.Tags)
			found[i].Tags[lint.TagScope] = lint.ScopeMesh
		}
	}
	return lint.JoinMesh(found)
}
