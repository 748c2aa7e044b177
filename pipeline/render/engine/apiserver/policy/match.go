// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	listersv1 "k8s.io/client-go/listers/core/v1"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// errUnknownNamespace is returned if a selector needs the labels of an unknown namespace.
var errUnknownNamespace = errors.New("the labels of the namespace are not known")

// namespaces are the ones that the API server's matcher asks for. An unknown namespace has only what every
// namespace has.
type namespaces struct {
	listersv1.NamespaceLister

	s *Set
}

// Get returns a namespace by its name.
func (n namespaces) Get(name string) (*corev1.Namespace, error) {
	if known := n.s.cluster.Namespaces[name]; known != nil {
		return known, nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}, nil
}

// criteria are what a policy or a binding matches.
type criteria struct {
	*admissionv1.MatchResources
}

func (c criteria) GetParsedNamespaceSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(c.NamespaceSelector)
}

func (c criteria) GetParsedObjectSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(c.ObjectSelector)
}

func (c criteria) GetMatchResources() admissionv1.MatchResources { return *c.MatchResources }

// interfaces are those that the API server passes to the matcher, which uses one of them.
type interfaces struct {
	admission.ObjectInterfaces

	resources runtime.EquivalentResourceMapper
}

func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return i.resources
}

// matchesRequest reports whether a policy or a binding is about the request, and as what.
func (s *Set) matchesRequest(
	m *admissionv1.MatchResources, r *request.Request,
) (bool, schema.GroupVersionResource, schema.GroupVersionKind, error) {
	if m == nil {
		return true, r.Kind.GroupVersionResource(), r.Kind.GroupVersionKind, nil
	}
	matched, resource, kind, err := s.matcher.Matches(r.Attributes(), interfaces{resources: s.resource}, criteria{m})
	if err != nil {
		return false, resource, kind, err
	}
	if !s.isUncertain(m.NamespaceSelector, r) {
		return matched, resource, kind, nil
	}
	// The labels decide. If the other criteria do not match, the labels need not be known.
	anywhere := *m
	anywhere.NamespaceSelector = &metav1.LabelSelector{}
	matched, resource, kind, err = s.matcher.Matches(r.Attributes(), interfaces{resources: s.resource}, criteria{&anywhere})
	if matched && err == nil {
		err = errUnknownNamespace
	}
	return matched, resource, kind, err
}

// isUncertain reports whether a selector asks for labels of a namespace that is not known, beside the one that every namespace has.
func (s *Set) isUncertain(selector *metav1.LabelSelector, r *request.Request) bool {
	if r.Namespace == "" || r.Kind.Kind == "Namespace" || s.cluster.Namespaces[r.Namespace] != nil {
		return false
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false
	}
	requirements, _ := parsed.Requirements()
	others := false
	for _, one := range requirements {
		if one.Key() != corev1.LabelMetadataName {
			others = true
			continue
		}
		if !one.Matches(labels.Set{corev1.LabelMetadataName: r.Namespace}) {
			return false // it does not match, regardless of the others
		}
	}
	return others
}

// namespaceOf is the namespace that expressions see; nil for what is in none.
func (s *Set) namespaceOf(r *request.Request) (namespace *corev1.Namespace, known bool) {
	if !r.Kind.Namespaced {
		return nil, true
	}
	namespace = s.cluster.Namespaces[r.Namespace]
	return namespace, namespace != nil
}

// convertRequestObject returns the request with the object in the version that a policy matched.
func (s *Set) convertRequestObject(r *request.Request, kind schema.GroupVersionKind) (*admission.VersionedAttributes, error) {
	object, ok := r.Convert(kind, s.cluster.ConvertedByName)
	old, oldToo := r.ConvertOld(kind, s.cluster.ConvertedByName)
	if !ok || !oldToo {
		return nil, fmt.Errorf("the policy is about %s, into which %s cannot be converted here", kind.GroupVersion(), r.Kind.GroupVersion())
	}
	out := &admission.VersionedAttributes{Attributes: r.Attributes(), VersionedKind: kind}
	out.VersionedObject.Set(object)
	if old != nil {
		out.VersionedOldObject.Set(old)
	}
	return out, nil
}
