// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/scheme"

	defaults "github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/podmap"
)

// Kind is what the API server serves objects of a kind as.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural, such as deployments.
	Resource string
	// Namespaced reports whether objects are in a namespace.
	Namespaced bool
	// Status reports whether an object is created without its status, which is written later.
	Status bool
}

// GroupVersionResource names the resource in its version.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// Request is the creation of one object, or a change of it.
type Request struct {
	Kind Kind
	// Namespace is empty for what is in none; Name is empty where the API server makes it.
	Namespace, Name string
	// Object is in the API's own type where it has one, and as maps otherwise. It must not be changed.
	Object runtime.Object
	// Old is what the object is before a change, in the same form; nil for a creation.
	Old runtime.Object
	// User is who creates it; nil where that is not known.
	User user.Info
	// Of is the owner of the pod, such as "Deployment shop/web", or empty for an object that exists itself.
	Of string
	// Path is where in the manifest the pod's template is.
	Path []any
}

// Attributes are what admission reads of the request.
func (r *Request) Attributes() admission.Attributes {
	if r.Old != nil {
		return admission.NewAttributesRecord(r.Object, r.Old, r.Kind.GroupVersionKind, r.Namespace, r.Name, r.Kind.GroupVersionResource(), "",
			admission.Update, &metav1.UpdateOptions{}, false, r.User)
	}
	return admission.NewAttributesRecord(r.Object, nil, r.Kind.GroupVersionKind, r.Namespace, r.Name, r.Kind.GroupVersionResource(), "",
		admission.Create, &metav1.CreateOptions{}, false, r.User)
}

// Maker makes requests. Its fields must not change while it is used.
type Maker struct {
	// Server is the version of Kubernetes, for the defaults of pods.
	Server defaults.Server
	// User is the user who creates the objects that exist themselves, or nil if unknown.
	User user.Info
}

// Make returns the request that creates an object, without changing the object. An error means that the API server
// could not read it.
func (m *Maker) Make(object map[string]any, kind Kind) (*Request, error) {
	copied, err := storedCopy(object)
	if err != nil {
		return nil, err
	}
	metadata, ok := copied["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		copied["metadata"] = metadata
	}
	if kind.Status {
		delete(copied, "status")
	}
	r := &Request{Kind: kind, User: m.User}
	r.Name, _ = metadata["name"].(string)
	if r.Name == "" {
		if base, _ := metadata["generateName"].(string); base != "" {
			metadata["name"] = base + "x2n4b"
		}
	}
	if kind.Namespaced {
		if r.Namespace, _ = metadata["namespace"].(string); r.Namespace == "" {
			r.Namespace = metav1.NamespaceDefault
			metadata["namespace"] = r.Namespace
		}
	} else {
		delete(metadata, "namespace")
		if kind.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			r.Namespace = r.Name // a Namespace is in itself
		}
	}
	m.defaultPods(copied, kind.GroupVersionKind)
	r.Object, err = convertToTyped(copied, kind.GroupVersionKind)
	return r, err
}

// MakeUpdate returns the request that changes an object, as Make does the one that creates it.
func (m *Maker) MakeUpdate(object, old map[string]any, kind Kind) (*Request, error) {
	r, err := m.Make(object, kind)
	if err != nil {
		return nil, err
	}
	apiVersion, _ := old["apiVersion"].(string)
	if ParseKind(apiVersion, kind.Kind) != kind.GroupVersionKind {
		return nil, fmt.Errorf("reading the old object: it has the version %s, which is not converted here", apiVersion)
	}
	before, err := m.Make(old, kind)
	if err != nil {
		return nil, fmt.Errorf("reading the old object: %w", err)
	}
	r.Old = before.Object
	return r, nil
}

// Default sets the defaults of an object of the API's own types in place.
func (m *Maker) Default(object runtime.Object) {
	kind := object.GetObjectKind().GroupVersionKind()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return // a custom resource, whose defaults its definition has
	}
	m.defaultPods(fields, kind)
	filled, err := convertToTyped(fields, kind)
	if err != nil || reflect.TypeOf(filled) != reflect.TypeOf(object) {
		return
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(filled).Elem())
}

// storedCopy returns a copy with the types of numbers that the API server's own code expects.
func storedCopy(object map[string]any) (map[string]any, error) {
	if copied, ok := copyStored(object); ok {
		return copied.(map[string]any), nil
	}
	text, err := utiljson.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, utiljson.Unmarshal(text, &out)
}

// copyStored returns a copy as writing and reading JSON makes it, or false if only JSON's own code knows the result.
func copyStored(v any) (any, bool) {
	switch v := v.(type) {
	case nil, bool, int64:
		return v, true
	case int:
		return int64(v), true
	case string:
		return v, utf8.ValidString(v)
	case float64:
		if n := int64(v); float64(n) == v && n > -1<<53 && n < 1<<53 {
			return n, true
		}
		return nil, false
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			copied, ok := copyStored(child)
			if !ok || !utf8.ValidString(key) {
				return nil, false
			}
			out[key] = copied
		}
		return out, v != nil
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			copied, ok := copyStored(child)
			if !ok {
				return nil, false
			}
			out[i] = copied
		}
		return out, v != nil
	}
	return nil, false
}

// Decode reads an object into a Go type of Kubernetes, a pointer to a struct. A quantity that would take minutes is an error.
func Decode(object map[string]any, into any) error {
	if err := podmap.CheckQuantities(object, into); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
}

// convertToTyped returns the object in the type of its kind, with the defaults of the kind; as it is where the API has
// no type for it.
func convertToTyped(object map[string]any, kind schema.GroupVersionKind) (runtime.Object, error) {
	out, err := scheme.Scheme.New(kind)
	if err != nil {
		return &unstructured.Unstructured{Object: object}, nil //nolint:nilerr // a custom resource
	}
	if err := Decode(object, out); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	setDefaults(out)
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out, nil
}

// Convert returns the object of the request in another version of its kind, or false if that needs code that is not
// available.
func (r *Request) Convert(to schema.GroupVersionKind, byName func(schema.GroupKind) bool) (runtime.Object, bool) {
	return r.convert(r.Object, to, byName)
}

// ConvertOld returns the object before the change in another version of its kind; nil for a creation.
func (r *Request) ConvertOld(to schema.GroupVersionKind, byName func(schema.GroupKind) bool) (runtime.Object, bool) {
	if r.Old == nil {
		return nil, true
	}
	return r.convert(r.Old, to, byName)
}

func (r *Request) convert(object runtime.Object, to schema.GroupVersionKind, byName func(schema.GroupKind) bool) (runtime.Object, bool) {
	if to == r.Kind.GroupVersionKind {
		return object, true
	}
	custom, ok := object.(*unstructured.Unstructured)
	if !ok || to.GroupKind() != r.Kind.GroupKind() || !byName(to.GroupKind()) {
		return nil, false
	}
	out := custom.DeepCopy()
	out.SetAPIVersion(to.GroupVersion().String())
	return out, true
}

// ParseKind reads the apiVersion and kind of an object.
func ParseKind(apiVersion, kind string) schema.GroupVersionKind {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}
