// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// Group is the API group of policies and bindings.
const Group = "admissionregistration.k8s.io"

// Cluster is what policies are evaluated in. Its fields must not change while a Set uses it.
type Cluster struct {
	// Minor is N of the version 1.N of Kubernetes.
	Minor uint
	// Kinds are all kinds that the API server serves.
	Kinds []request.Kind
	// ConvertedByName reports whether versions of a custom resource differ in their names alone.
	ConvertedByName func(schema.GroupKind) bool
	// Namespaces are those that are known, by their names, with the labels that they have in a cluster.
	Namespaces map[string]*corev1.Namespace
	// Parameters returns the known objects of a kind.
	Parameters func(schema.GroupVersionKind) []map[string]any
	// IsComplete reports whether all objects of a kind are known; nil means that none is.
	IsComplete func(kind string) bool
}

// Set is the policies and bindings of a cluster. It must not be used by two goroutines at once.
type Set struct {
	cluster  Cluster
	policies map[string]*policy
	bindings []*admissionv1.ValidatingAdmissionPolicyBinding
	matcher  *matching.Matcher
	kinds    map[schema.GroupVersionKind]request.Kind
	resource runtime.EquivalentResourceRegistry
	gaps     map[Gap]*counted
}

func (s *Set) isComplete(kind string) bool {
	return s.cluster.IsComplete != nil && s.cluster.IsComplete(kind)
}

// policy is one that may be evaluated.
type policy struct {
	*admissionv1.ValidatingAdmissionPolicy
	reads    reads
	compiled map[variant]*compiled
}

// NewSet returns an empty set.
func NewSet(cluster Cluster) *Set {
	s := &Set{
		cluster: cluster, policies: map[string]*policy{}, kinds: map[schema.GroupVersionKind]request.Kind{},
		resource: runtime.NewEquivalentResourceRegistry(), gaps: map[Gap]*counted{},
	}
	s.matcher = matching.NewMatcher(namespaces{s: s}, nil)
	for _, k := range cluster.Kinds {
		s.kinds[k.GroupVersionKind] = k
		s.resource.RegisterKindFor(k.GroupVersionResource(), "", k.GroupVersionKind)
	}
	return s
}

// IsPolicy reports whether the kind is a ValidatingAdmissionPolicy.
func IsPolicy(k schema.GroupVersionKind) bool {
	return k.Group == Group && k.Kind == "ValidatingAdmissionPolicy"
}

// IsBinding reports whether the kind binds a ValidatingAdmissionPolicy.
func IsBinding(k schema.GroupVersionKind) bool {
	return k.Group == Group && k.Kind == "ValidatingAdmissionPolicyBinding"
}

// IsMutating reports whether the kind is a MutatingAdmissionPolicy.
func IsMutating(k schema.GroupVersionKind) bool {
	return k.Group == Group && k.Kind == "MutatingAdmissionPolicy"
}

// Empty reports whether the set cannot decide on any object.
func (s *Set) Empty() bool { return len(s.policies) == 0 || len(s.bindings) == 0 }

// AddPolicy adds a policy, replacing one of the same name. A policy that the API server would reject is not added;
// the problems explain why.
func (s *Set) AddPolicy(object map[string]any) []Problem {
	var read admissionv1.ValidatingAdmissionPolicy
	if err := decodeAnyVersion(object, &read); err != nil {
		return []Problem{{Message: err.Error()}}
	}
	delete(s.policies, read.Name)
	spec := &read.Spec
	if spec.FailurePolicy == nil {
		fail := admissionv1.Fail
		spec.FailurePolicy = &fail
	}
	defaultResources(spec.MatchConstraints)
	p := &policy{ValidatingAdmissionPolicy: &read, compiled: map[variant]*compiled{}}
	problems := p.checkPolicyCreation(s.cluster.Minor)
	if len(problems) == 0 {
		p.reads, problems = readsOf(spec, s.cluster.Minor)
	}
	if len(problems) == 0 {
		s.policies[read.Name] = p
	}
	return problems
}

// AddBinding adds a binding, in the place of one of the same name.
func (s *Set) AddBinding(object map[string]any) []Problem {
	var read admissionv1.ValidatingAdmissionPolicyBinding
	if err := decodeAnyVersion(object, &read); err != nil {
		return []Problem{{Message: err.Error()}}
	}
	defaultResources(read.Spec.MatchResources)
	s.bindings = slices.DeleteFunc(s.bindings, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Name == read.Name })
	problems := checkBinding(&read)
	if len(problems) == 0 {
		s.bindings = append(s.bindings, &read)
		slices.SortFunc(s.bindings, func(a, b *admissionv1.ValidatingAdmissionPolicyBinding) int { return cmp.Compare(a.Name, b.Name) })
	}
	return problems
}

// decodeAnyVersion reads an object of any version of the group: they have the same fields.
func decodeAnyVersion(object map[string]any, into any) error {
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	return nil
}

// defaultResources sets the API server's defaults of what is matched.
func defaultResources(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	if m.MatchPolicy == nil {
		equivalent := admissionv1.Equivalent
		m.MatchPolicy = &equivalent
	}
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	if m.ObjectSelector == nil {
		m.ObjectSelector = &metav1.LabelSelector{}
	}
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			if rules[i].Scope == nil {
				all := admissionv1.AllScopes
				rules[i].Scope = &all
			}
		}
	}
}

// Unbound returns the names of policies that bindings name and that are not in the set, with those of the bindings.
func (s *Set) Unbound() map[string]string {
	out := map[string]string{}
	for _, b := range s.bindings {
		if s.policies[b.Spec.PolicyName] == nil {
			out[b.Name] = b.Spec.PolicyName
		}
	}
	return out
}
