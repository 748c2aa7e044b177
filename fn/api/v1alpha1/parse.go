// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"reflect"
	"sort"
)

// MaxBytes is the size of the largest policy that is read. The largest injector configurations are about 100 KB.
const MaxBytes = 16 << 20

// Parse reads a policy from YAML or JSON: one object, defaulted and validated. A v1 ConfigMap is read as FromObject says.
// What is wrong with the policy comes back as a *PolicyError with the line of every problem.
func Parse(data []byte) (*InjectionPolicy, error) {
	src, err := readSource(data)
	if err != nil {
		return nil, fmt.Errorf("reading InjectionPolicy: %w", err)
	}
	return read(src.object, src.duplicates, src)
}

// FromObject reads a policy from an object of maps, lists and scalars (int64 and float64 for numbers), as it comes in a
// ResourceList. It is defaulted and validated. Problems come back as a *PolicyError without lines; see FromLocated.
//
// A v1 ConfigMap, as "kpt fn eval -- key=value" makes one, is read with the keys of ConfigMapKeys.
func FromObject(obj map[string]any) (*InjectionPolicy, error) { return read(obj, nil, nil) }

// Located is an object that knows where its fields are in a file, such as a document of package manifest.
type Located interface {
	Object() (map[string]any, error)
	Locate(path ...any) (line, col int, ok bool)
}

// FromLocated is FromObject with lines and columns in its problems.
func FromLocated(doc Located) (*InjectionPolicy, error) {
	obj, err := doc.Object()
	if err != nil {
		return nil, fmt.Errorf("reading InjectionPolicy: %w", err)
	}
	return read(obj, nil, doc)
}

type locator interface {
	Locate(path ...any) (line, col int, ok bool)
}

func read(obj map[string]any, known []Problem, where locator) (*InjectionPolicy, error) {
	ps := &problems{list: known}
	p := &InjectionPolicy{}
	switch {
	case isConfigMap(obj):
		p = ps.fromConfigMap(obj)
	case ps.checkKind(obj):
		ps.decode(nil, obj, reflect.ValueOf(p).Elem())
		ps.checkVerbatim(obj)
	}
	if len(ps.list) == 0 {
		p.SetDefaults()
		ps.validate(p)
	}
	if len(ps.list) == 0 {
		return p, nil
	}
	e := &PolicyError{Name: p.Metadata.Name, Problems: ps.list}
	if where != nil {
		for i := range e.Problems {
			e.Problems[i].locate(where)
		}
		sort.SliceStable(e.Problems, func(i, j int) bool { return e.Problems[i].Line < e.Problems[j].Line })
	}
	return nil, e
}

// locate finds the line of the key, or of the nearest part of its path that is there.
func (p *Problem) locate(where locator) {
	for path := p.Path; p.Line == 0 && len(path) > 0; path = path[:len(path)-1] {
		if line, col, ok := where.Locate(path...); ok {
			p.Line, p.Column = line, col
		}
	}
}

// checkKind says whether the object is a policy of a version that is known here.
func (ps *problems) checkKind(obj map[string]any) bool {
	ok := ps.checkType(obj, "apiVersion", APIVersion)
	return ps.checkType(obj, "kind", Kind) && ok
}

// checkType says whether apiVersion or kind of an object is the one that is read here.
func (ps *problems) checkType(obj map[string]any, key, want string) bool {
	switch v := obj[key]; v {
	case want:
		return true
	case nil:
		ps.add([]any{key}, "is missing; it must be %s", want)
	default:
		ps.add([]any{key}, "%s is not supported; supported is %s", describe(v), want)
	}
	return false
}

func describe(v any) string {
	switch v := v.(type) {
	case string:
		return quoted(v)
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	}
	return fmt.Sprint(v)
}

// IsPolicy says whether an object with this apiVersion and kind is an InjectionPolicy, of any version.
func IsPolicy(apiVersion, kind string) bool {
	const group = "prerig.dev/"
	return kind == Kind && len(apiVersion) > len(group) && apiVersion[:len(group)] == group
}
