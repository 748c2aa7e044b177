// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// parametersForBinding returns the parameters that a binding passes to the policy for the request, in order; a nil
// entry means that it passes none. The error is a configuration error, which the API server handles according to the
// failure policy (source: CollectParams in pkg/admission/plugin/policy/generic of k8s.io/apiserver).
func (s *Set) parametersForBinding(p *policy, b *admissionv1.ValidatingAdmissionPolicyBinding, r *request.Request) ([]runtime.Object, error) {
	wanted, ref := p.Spec.ParamKind, b.Spec.ParamRef
	if wanted == nil || ref == nil {
		return []runtime.Object{nil}, nil
	}
	id := request.ParseKind(wanted.APIVersion, wanted.Kind)
	kind, ok := s.kinds[id]
	if !ok {
		return nil, fmt.Errorf("paramKind kind `%v` not known", wanted.String())
	}
	namespace := ""
	switch {
	case !kind.Namespaced && ref.Namespace != "":
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case kind.Namespaced && ref.Namespace != "":
		namespace = ref.Namespace
	case kind.Namespaced && r.Namespace == "":
		return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	case kind.Namespaced:
		namespace = r.Namespace
	}
	found, err := s.findReferencedParameters(kind, ref, namespace)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return found, nil
	}
	if action := ref.ParameterNotFoundAction; action != nil && *action == admissionv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	if s.isComplete(id.Kind) {
		return nil, nil
	}
	place := ""
	if namespace != "" {
		place = " in namespace " + namespace
	}
	s.recordPolicyGap(Gap{Binding: b.Name, Path: "spec.paramRef", Reason: fmt.Sprintf("its parameters of kind %s%s are not known", id.Kind, place)}, r)
	return nil, nil
}

// findReferencedParameters returns the parameters that a reference means.
func (s *Set) findReferencedParameters(kind request.Kind, ref *admissionv1.ParamRef, namespace string) ([]runtime.Object, error) {
	selector := labels.Everything()
	if ref.Name == "" {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(ref.Selector); err != nil {
			return nil, err
		}
	}
	var out []runtime.Object
	maker := request.Maker{}
	for _, object := range s.cluster.Parameters(kind.GroupVersionKind) {
		made, err := maker.Make(object, kind)
		if err != nil || made.Namespace != namespace && kind.Namespaced || ref.Name != "" && made.Name != ref.Name {
			continue
		}
		param, err := toUnstructured(made.Object)
		if err != nil {
			return nil, err
		}
		if selector.Matches(labels.Set(param.GetLabels())) {
			out = append(out, param)
		}
	}
	return out, nil
}

// toUnstructured returns an object as expressions see parameters.
func toUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// isSecret reports whether no value of the kind may be shown.
func isSecret(kind schema.GroupVersionKind) bool { return kind.Group == "" && kind.Kind == "Secret" }
