// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// typeChecker reads objects as server-side apply does. Reading the types lasts most of a second, so it is deferred
// until one is needed.
type typeChecker struct{ converter managedfields.TypeConverter }

// check returns what server-side apply rejects of an object before all other checks.
func (c *typeChecker) check(text json.RawMessage) ([]Problem, error) {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, &undecodableError{err}
	}
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(integers(fields).(map[string]any))}
	kind := object.GroupVersionKind()
	// Kubernetes has no types of server-side apply for the kinds of these groups in its modules.
	if !legacyscheme.Scheme.Recognizes(kind) || kind.Group == apiextensions.GroupName ||
		kind.Group == apiregistration.GroupName {
		return nil, errUnknownKind
	}
	if c.converter == nil {
		c.converter = applyconfigurations.NewTypeConverter(legacyscheme.Scheme)
	}
	_, err := c.converter.ObjectToTyped(object)
	var found typed.ValidationErrors
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &found):
	default:
		return nil, fmt.Errorf("reading the object as its type: %w", err)
	}
	var out []Problem
	for _, one := range found {
		field := strings.TrimPrefix(one.Path, ".")
		out = append(out, Problem{Field: field, Type: applyType(one.ErrorMessage), Message: one.ErrorMessage})
	}
	return out, nil
}

func applyType(message string) string {
	switch {
	case strings.Contains(message, "duplicate"):
		return string(metav1.CauseTypeFieldValueDuplicate)
	case strings.Contains(message, "not declared"):
		return TypeNotDeclared
	}
	return string(metav1.CauseTypeFieldValueInvalid)
}

// integers returns a decoded value in which whole numbers are integers, as the API server has them.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = integers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = integers(item)
		}
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return value
}
