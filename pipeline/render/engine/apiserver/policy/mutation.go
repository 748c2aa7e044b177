// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// By names one mutation of a policy.
type By struct {
	Policy, Binding string
	// Param is the name of the parameter, or empty.
	Param string
	// Mutation is the index of the mutation in the policy.
	Mutation int
}

// Lack is a policy or binding that was not evaluated.
type Lack struct {
	// Kind and Name are those of the policy or binding.
	Kind, Name string
	// Reason explains why.
	Reason string
}

// String returns a sentence.
func (l Lack) String() string { return l.Kind + " " + l.Name + " was not evaluated: " + l.Reason }

// The kinds.
const (
	mutatingKind        = "MutatingAdmissionPolicy"
	mutatingBindingKind = "MutatingAdmissionPolicyBinding"
)

// Mutation is the evaluation of the policies for one pod, in up to two rounds.
type Mutation struct {
	// Observe, if not nil, receives the pod before and after each mutation that was evaluated.
	Observe func(by By, before, after *corev1.Pod)
	// Seen, if not nil, receives the pod before the first policy of each round.
	Seen func(pod *corev1.Pod)
	// Missing lists what was not evaluated.
	Missing []Lack

	set        *MutatingSet
	request    *request.Request
	pod        *corev1.Pod
	attributes admission.Attributes
	reversed   bool
	applied    map[string]bool // the policies, bindings and parameters that were evaluated
	patched    bool            // a mutation was evaluated in this round
	pending    *By             // the mutation whose outcome is not observed yet
	before     runtime.Object
}

// NewMutation returns the evaluation for a request. It changes the pod in place. The API server takes policies, and the parameters that a
// binding selects, in no fixed order; reversed takes them in the opposite one.
func (s *MutatingSet) NewMutation(r *request.Request, pod *corev1.Pod, reversed bool) *Mutation {
	of := *r
	of.Object = pod
	return &Mutation{set: s, request: &of, pod: pod, attributes: of.Attributes(), reversed: reversed, applied: map[string]bool{}}
}

// Run evaluates the policies once. Its error is the API server's reason for rejecting the pod.
func (m *Mutation) Run(ctx context.Context) error {
	m.patched = false
	var hooks []mutating.PolicyHook
	for _, name := range m.set.names() {
		hooks = append(hooks, m.hooksOf(m.set.policies[name])...)
	}
	if m.reversed {
		slices.Reverse(hooks)
	}
	if len(hooks) == 0 {
		return nil
	}
	if m.Seen != nil {
		m.Seen(m.pod)
	}
	err := m.set.dispatcher.Dispatch(ctx, m.attributes, m.set.objects, hooks)
	m.observed(m.pod)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return errors.New(status.ErrStatus.Message)
	}
	return err
}

// Applied returns how many policies, by their bindings and parameters, were evaluated. With several of them the order may count.
func (m *Mutation) Applied() int { return len(m.applied) }

// Patched reports whether a mutation was evaluated in the last round.
func (m *Mutation) Patched() bool { return m.patched }

// WantsReinvocation reports whether the API server runs a second round.
func (m *Mutation) WantsReinvocation() bool {
	return m.attributes.GetReinvocationContext().ShouldReinvoke()
}

// Reinvoke begins the second round.
func (m *Mutation) Reinvoke() { m.attributes.GetReinvocationContext().SetIsReinvoke() }

// hooksOf returns a policy with each of its bindings that is about the pod, without those that cannot be evaluated.
func (m *Mutation) hooksOf(p *mutatingPolicy) (out []mutating.PolicyHook) {
	if !m.matches(mutatingKind, p.Name, p.Spec.MatchConstraints) {
		return nil
	}
	for _, b := range m.set.bindings {
		if b.Spec.PolicyName != p.Name || !m.matches(mutatingBindingKind, b.Name, b.Spec.MatchResources) {
			continue
		}
		_, known := m.set.set.namespaceOf(m.request)
		if v := (variant{user: m.request.User != nil, namespace: known}); p.reads.readsUnknownValues(v) {
			m.lack(mutatingKind, p.Name, p.reads.describeUnknownReads(v))
			continue
		}
		hook := mutating.PolicyHook{
			Policy: p.MutatingAdmissionPolicy, Bindings: []*admissionv1.MutatingAdmissionPolicyBinding{b}, Evaluator: p.evaluator,
		}
		if !m.addParams(&hook, p, b) {
			continue
		}
		hook.Evaluator.Mutators = make([]patch.Patcher, len(p.evaluator.Mutators))
		for i, inner := range p.evaluator.Mutators {
			hook.Evaluator.Mutators[i] = observedPatcher{
				inner, m, By{Policy: p.Name, Binding: b.Name, Mutation: i},
				p.Spec.Mutations[i].PatchType == admissionv1.PatchTypeApplyConfiguration,
			}
		}
		out = append(out, hook)
	}
	return out
}

// matches reports whether criteria are about the pod. Where that depends on unknown labels, it names them.
func (m *Mutation) matches(kind, name string, criteria *admissionv1.MatchResources) bool {
	matched, _, _, err := m.set.set.matchesRequest(criteria, m.request)
	if errors.Is(err, errUnknownNamespace) {
		m.lack(kind, name, unknownLabels(m.request))
		return false
	}
	return matched || err != nil // the API server handles an error by the failure policy
}

// addParams adds the parameters of a binding, and reports whether the policy can be evaluated.
func (m *Mutation) addParams(hook *mutating.PolicyHook, p *mutatingPolicy, b *admissionv1.MutatingAdmissionPolicyBinding) bool {
	wanted, ref := p.Spec.ParamKind, b.Spec.ParamRef
	if wanted == nil || ref == nil {
		return true
	}
	set := m.set.set
	id := request.ParseKind(wanted.APIVersion, wanted.Kind)
	kind, ok := set.kinds[id]
	if !ok {
		if !set.isComplete("CustomResourceDefinition") {
			m.lack(mutatingKind, p.Name, "the CustomResourceDefinition of its parameters of kind "+id.Kind+" is not known")
			return false
		}
		hook.ConfigurationError = fmt.Errorf("paramKind kind `%v` not known", wanted.String())
		return true
	}
	hook.ParamInformer, hook.ParamScope = paramInformer{set: set, kind: kind, reversed: m.reversed}, meta.RESTScopeRoot
	namespace := ""
	if kind.Namespaced {
		hook.ParamScope = meta.RESTScopeNamespace
		if namespace = ref.Namespace; namespace == "" {
			namespace = m.request.Namespace
		}
	}
	found, err := set.findReferencedParameters(kind, ref, namespace)
	if err == nil && len(found) == 0 && !set.isComplete(id.Kind) {
		m.lack(mutatingBindingKind, b.Name, "its parameters of kind "+id.Kind+" are not known")
		return false
	}
	return true
}

func (m *Mutation) lack(kind, name, reason string) {
	if one := (Lack{kind, name, reason}); !slices.Contains(m.Missing, one) {
		m.Missing = append(m.Missing, one)
	}
}

// observed reports the outcome of the last mutation: it shows in the object that the next one receives.
func (m *Mutation) observed(now runtime.Object) {
	if m.pending == nil {
		return
	}
	before, ok := m.before.(*corev1.Pod)
	after, both := now.(*corev1.Pod)
	if m.Observe != nil && ok && both {
		m.Observe(*m.pending, before, after)
	}
	m.pending = nil
}

// observedPatcher is a mutation that reports its outcome.
type observedPatcher struct {
	patch.Patcher

	of      *Mutation
	by      By
	applies bool // an apply configuration
}

// Patch applies the mutation.
func (p observedPatcher) Patch(ctx context.Context, r patch.Request, budget int64) (runtime.Object, error) {
	before := r.VersionedAttributes.VersionedObject.Object()
	p.of.patched = true
	p.of.observed(before)
	p.of.set.defaulter.before = before
	if p.of.Observe != nil {
		before = before.DeepCopyObject()
	}
	if param, accessErr := meta.Accessor(r.OptionalVariables.VersionedParams); accessErr == nil {
		p.by.Param = param.GetName()
	}
	p.of.applied[p.by.Policy+"/"+p.by.Binding+"/"+p.by.Param] = true
	after, err := p.Patcher.Patch(ctx, r, budget)
	if err != nil {
		return after, err
	}
	if err := p.checkDuplicateKeys(r); err != nil {
		return nil, err
	}
	p.of.pending, p.of.before = &p.by, before
	return after, nil
}

// allowsDuplicateKeys is the first version 1.N of Kubernetes in which an apply configuration accepts an object with
// several entries of one key in a list (source: ApplyStructuredMergeDiff in
// pkg/admission/plugin/policy/mutating/patch/smd.go of k8s.io/apiserver 0.34 and 0.35).
const allowsDuplicateKeys = 35

// checkDuplicateKeys returns the error of older API servers about an object with duplicate keys.
func (p observedPatcher) checkDuplicateKeys(r patch.Request) error {
	minor := p.of.set.set.cluster.Minor
	if !p.applies || minor == 0 || minor >= allowsDuplicateKeys {
		return nil
	}
	if _, err := r.TypeConverter.ObjectToTyped(r.VersionedAttributes.VersionedObject.Object()); err != nil {
		return fmt.Errorf("error applying patch: failed to convert original object to typed object: %w", err)
	}
	return nil
}
