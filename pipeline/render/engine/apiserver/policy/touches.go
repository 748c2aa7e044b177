// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Touches is what expressions and selectors may read of a pod and of its namespace: all that can make them treat two pods differently. The
// zero value reads nothing.
type Touches struct {
	// All reports whether it is not known what is read.
	All bool
	// Namespace reports whether the name of the namespace is read.
	Namespace bool

	touched   []touch
	selectors strings.Builder // of the labels of pods
}

// touch is a value that is read.
type touch struct {
	// root is the name under which the API server provides it, such as object.
	root string
	// path leads to it. anyElement is each element of a list.
	path []string
	how  touchKind
}

// anyElement is in the place of the index of each element of a list.
const anyElement = "*"

// touchKind is how much is read of a value.
type touchKind int

const (
	wholly   touchKind = iota // the value with all that is in it
	itself                    // a scalar, or which elements and keys there are
	elements                  // itself, and the elements of a list with all that is in them
)

// ReadsLabel reports whether a selector may read a label of pods.
func (t *Touches) ReadsLabel(key string) bool { return strings.Contains(t.selectors.String(), key) }

// Any reports whether an expression or selector may read anything.
func (t *Touches) Any() bool { return t.All || len(t.touched) > 0 || t.selectors.Len() > 0 }

// Reads reports whether an expression or selector may read the value at a path of the pod. An index is written as a number.
func (t *Touches) Reads(path []any) bool {
	if len(path) == 3 && path[0] == "metadata" && path[1] == "labels" {
		if key, ok := path[2].(string); ok && t.ReadsLabel(key) {
			return true
		}
	}
	return t.All || slices.ContainsFunc(t.touched, func(one touch) bool { return one.root == "object" && one.covers(path) })
}

// covers reports whether reading the touched value reads the one at a path.
func (t touch) covers(path []any) bool {
	if len(path) < len(t.path) {
		return false
	}
	for i, key := range t.path {
		switch at := path[i].(type) {
		case string:
			if key != at && key != anyElement { // anyElement is each value of a map, too
				return false
			}
		case int:
			if key != anyElement {
				return false
			}
		}
	}
	further := path[len(t.path):]
	switch {
	case len(further) == 0, t.how == wholly:
		return true
	case t.how == elements:
		_, ofList := further[0].(int)
		return ofList
	}
	return false
}

// namespacePaths are where the name of the namespace is, beside the object.
var namespacePaths = []touch{
	{root: "request", path: []string{"namespace"}}, {root: "namespaceObject", path: []string{"metadata", "name"}},
	{root: "namespaceObject", path: []string{"metadata", "labels", corev1.LabelMetadataName}},
}

// add adds what is touched.
func (t *Touches) add(list []touch) {
	for _, one := range list {
		for _, place := range namespacePaths {
			var path []any
			for _, key := range place.path {
				path = append(path, key)
			}
			t.Namespace = t.Namespace || one.root == place.root && one.covers(path)
		}
		t.touched = append(t.touched, one)
	}
}

// addResources adds the selectors of what is matched.
func (t *Touches) addResources(m *admissionv1.MatchResources) {
	if m != nil {
		t.addSelectors(m.NamespaceSelector, m.ObjectSelector)
	}
}

func (t *Touches) addSelectors(namespaces, objects *metav1.LabelSelector) {
	text, err := json.Marshal(namespaces)
	t.Namespace = t.Namespace || err != nil || strings.Contains(string(text), corev1.LabelMetadataName)
	if objects == nil {
		return
	}
	text, err = json.Marshal(objects)
	t.All = t.All || err != nil
	t.selectors.Write(text)
}

// addParams adds that parameters of a binding may be those of the pod's own namespace.
func (t *Touches) addParams(ref *admissionv1.ParamRef) {
	t.Namespace = t.Namespace || ref != nil && ref.Namespace == ""
}

// AddTouches adds what the policies and bindings read.
func (s *Set) AddTouches(t *Touches) {
	for _, b := range s.bindings {
		t.addResources(b.Spec.MatchResources)
		t.addParams(b.Spec.ParamRef)
	}
	for _, p := range s.policies {
		t.addResources(p.Spec.MatchConstraints)
		w := newTouchWalker(s.cluster.Minor)
		w.addVariables(p.Spec.Variables)
		for _, c := range p.Spec.MatchConditions {
			w.addExpression(c.Expression)
		}
		for _, v := range p.Spec.Validations {
			w.addExpression(v.Expression)
			w.addExpression(v.MessageExpression)
		}
		for _, a := range p.Spec.AuditAnnotations {
			w.addExpression(a.ValueExpression)
		}
		t.take(w)
	}
}

// AddTouches adds what the policies and bindings read.
func (s *MutatingSet) AddTouches(t *Touches) {
	for _, b := range s.bindings {
		t.addResources(b.Spec.MatchResources)
		t.addParams(b.Spec.ParamRef)
	}
	for _, p := range s.policies {
		t.addResources(p.Spec.MatchConstraints)
		w := newTouchWalker(s.set.cluster.Minor)
		w.addVariables(p.Spec.Variables)
		for _, c := range p.Spec.MatchConditions {
			w.addExpression(c.Expression)
		}
		for _, m := range p.Spec.Mutations {
			text, _ := mutationExpression(m)
			w.addExpression(text)
			if m.PatchType == admissionv1.PatchTypeApplyConfiguration && strings.Contains(text, "ontainers") {
				w.addContainerNames()
			}
		}
		t.take(w)
	}
}

// AddWebhook adds what decides whether the API server calls a webhook.
func (s *Set) AddWebhook(t *Touches, hook *admissionv1.MutatingWebhook) {
	t.addSelectors(hook.NamespaceSelector, hook.ObjectSelector)
	w := newTouchWalker(s.cluster.Minor)
	for _, c := range hook.MatchConditions {
		w.addExpression(c.Expression)
	}
	t.take(w)
}

func (t *Touches) take(w *touchWalker) {
	t.All = t.All || w.all
	t.add(w.out)
}
