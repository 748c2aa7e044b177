// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"github.com/prerig/prerig/fn/strict"
)

// MaxBytes is the size of the largest policy that is read. The largest injector configurations are about 100 KB.
const MaxBytes = 16 << 20

// Parse parses a policy from YAML or JSON: one object, defaulted and validated. A v1 ConfigMap is handled as in
// FromObject. Problems of the policy are returned as a *PolicyError with the line of each.
func Parse(data []byte) (*InjectionPolicy, error) {
	doc, obj, err := readObject(data)
	if err != nil {
		return nil, fmt.Errorf("reading InjectionPolicy: %w", err)
	}
	return readPolicyObject(obj, doc.Duplicates(nil), doc)
}

// ParseFile is Parse for the content of a file, which messages about the policy name.
func ParseFile(file string, data []byte) (*InjectionPolicy, error) {
	p, err := Parse(data)
	if err == nil {
		p.Source = Source{File: file, Text: data}
	}
	return p, err
}

// readObject reads the one object of a file.
func readObject(data []byte) (*strict.Document, map[string]any, error) {
	doc, err := strict.ReadOne(data, MaxBytes)
	if err != nil {
		return nil, nil, err
	}
	obj, ok := doc.Value.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("it is %s, not an object with apiVersion and kind", strict.Describe(doc.Value))
	}
	return doc, obj, nil
}

// FromObject reads a policy from an object of maps, lists and scalars (int64 and float64 for numbers), as it comes in a
// ResourceList. It is defaulted and validated. Problems come back as a *PolicyError without lines; see FromLocated.
//
// A v1 ConfigMap, as "kpt fn eval -- key=value" makes one, is read with the keys of configMapPaths.
func FromObject(obj map[string]any) (*InjectionPolicy, error) { return readPolicyObject(obj, nil, nil) }

// Located is an object that knows where its fields are in a file, such as a document of package manifest.
type Located interface {
	Object() (map[string]any, error)
	strict.Locator
}

// FromLocated is FromObject with lines and columns in its problems.
func FromLocated(doc Located) (*InjectionPolicy, error) {
	obj, err := doc.Object()
	if err != nil {
		return nil, fmt.Errorf("reading InjectionPolicy: %w", err)
	}
	return readPolicyObject(obj, nil, doc)
}

func readPolicyObject(obj map[string]any, known []strict.Problem, where strict.Locator) (*InjectionPolicy, error) {
	ps := &problems{}
	ps.List = known
	p := &InjectionPolicy{}
	switch {
	case isConfigMap(obj):
		p = ps.fromConfigMap(obj)
	case ps.checkKind(obj):
		ps.decodeAPIObject(nil, obj, p)
		ps.checkVerbatim(obj)
		ps.checkWebhookKeys(obj)
	}
	if len(ps.List) == 0 {
		p.SetDefaults()
		ps.validate(p)
	}
	if len(ps.List) == 0 {
		return p, nil
	}
	if where != nil {
		ps.Locate(where)
	}
	return nil, &PolicyError{Name: p.Metadata.Name, Problems: ps.List}
}

// checkKind reports whether the object is a policy of a version that is known here.
func (ps *problems) checkKind(obj map[string]any) bool {
	ok := ps.checkType(obj, "apiVersion", APIVersion)
	return ps.checkType(obj, "kind", Kind) && ok
}

// checkType reports whether apiVersion or kind of an object is the one that is read here.
func (ps *problems) checkType(obj map[string]any, key, want string) bool {
	switch v := obj[key]; v {
	case want:
		return true
	case nil:
		ps.Add([]any{key}, "is missing; it must be %s", want)
	default:
		ps.Add([]any{key}, "%s is not supported; it must be %s", strict.Describe(v), want)
	}
	return false
}

// IsPolicy reports whether an object with this apiVersion and kind is an InjectionPolicy, of any version.
func IsPolicy(apiVersion, kind string) bool {
	const group = "prerig.dev/"
	return kind == Kind && len(apiVersion) > len(group) && apiVersion[:len(group)] == group
}
