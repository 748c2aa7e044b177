// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// kind is what a field of the pod holds.
type kind uint8

const (
	// anyKind is a field that is not known here, or one that reads several kinds, such as a quantity.
	anyKind kind = iota
	stringKind
	boolKind
	numberKind
	structKind
	mapKind
	listKind
)

// schema is the type of a value in a pod, with Kubernetes' patch rules: a tree made from the Go types. The fields of a struct
// are read when the first of them is asked for, because a pod has few of the types that it could have.
type schema struct {
	kind kind
	name string
	// elem is the type of a list's or map's elements.
	elem *schema
	// fields returns the fields of a struct by their names in JSON.
	fields func() map[string]*schemaField
}

// field returns a field of a struct, or nil where there is none of that name.
func (s *schema) field(name string) *schemaField {
	if s.fields == nil {
		return nil
	}
	return s.fields()[name]
}

// schemaField is one field of a struct.
type schemaField struct {
	schema *schema
	// index is the field's place in the Go type.
	index []int
	// pointer says that an empty value means something else than none.
	pointer  bool
	mergeKey string
	merge    bool
	meta     strategicpatch.PatchMeta
}

// alwaysThere says that the JSON of Kubernetes' types has the field whenever it has what the field is in.
func (f *schemaField) alwaysThere() bool { return !f.pointer && f.schema.kind == structKind }

// podSchema is the schema of a pod.
var podSchema = sync.OnceValue(func() *schema { return schemaOf(reflect.TypeFor[corev1.Pod]()) })

// unknownSchema is the one of fields newer than our types: maps merge and lists are replaced.
var unknownSchema = &schema{kind: anyKind, name: "unknown"}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// schemas has the schema of each type that was asked for. They are made from the types alone.
var schemas sync.Map

// schemaOf returns the schema of a Go type.
func schemaOf(t reflect.Type) *schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := schemas.Load(t); ok {
		return s.(*schema)
	}
	s, _ := schemas.LoadOrStore(t, newSchema(t))
	return s.(*schema)
}

func newSchema(t reflect.Type) *schema {
	s := &schema{name: t.Name()}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return s
	}
	switch t.Kind() {
	case reflect.String:
		s.kind = stringKind
	case reflect.Bool:
		s.kind = boolKind
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Float64:
		s.kind = numberKind
	case reflect.Map:
		s.kind, s.elem = mapKind, schemaOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.kind = stringKind
			break
		}
		s.kind, s.elem = listKind, schemaOf(t.Elem())
	case reflect.Struct:
		s.kind = structKind
		s.fields = sync.OnceValue(func() map[string]*schemaField {
			fields := make(map[string]*schemaField, t.NumField())
			addFields(fields, t, nil)
			return fields
		})
	}
	return s
}

// addFields adds the fields of a struct, which is at an index of another one, and of those that are inlined in it.
func addFields(fields map[string]*schemaField, t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && (name == "" || strings.Contains(options, "inline")) {
			addFields(fields, f.Type, index)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		field := &schemaField{schema: schemaOf(f.Type), index: index, pointer: f.Type.Kind() == reflect.Pointer}
		if strategies := f.Tag.Get("patchStrategy"); strategies != "" {
			list := strings.Split(strategies, ",")
			field.meta.SetPatchStrategies(list)
			field.merge = slices.Contains(list, "merge")
		}
		field.mergeKey = f.Tag.Get("patchMergeKey")
		field.meta.SetPatchMergeKey(field.mergeKey)
		fields[name] = field
	}
}

// LookupPatchMetadataForStruct is the patch rule of a field that holds a map.
func (s *schema) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	if s.kind == mapKind {
		return s.elem, strategicpatch.PatchMeta{}, nil
	}
	if f := s.field(key); f != nil {
		return f.schema, f.meta, nil
	}
	return unknownSchema, strategicpatch.PatchMeta{}, nil
}

// LookupPatchMetadataForSlice is the patch rule of a field that holds a list.
func (s *schema) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	f := s.field(key)
	if f == nil || f.schema.kind != listKind {
		return unknownSchema, strategicpatch.PatchMeta{}, nil
	}
	return f.schema.elem, f.meta, nil
}

// Name is the type's name, for messages.
func (s *schema) Name() string { return s.name }

// typeError says that a value does not have the type that Kubernetes wants.
func (s *schema) typeError(v any) error {
	want := map[kind]string{
		stringKind: "a string", boolKind: "a bool", numberKind: "a number", structKind: "a map", mapKind: "a map", listKind: "a list",
	}[s.kind]
	return fmt.Errorf("it has to be %s and is %s", want, describe(v))
}

// accepts says whether a value has the schema's type. Null is accepted everywhere.
func (s *schema) accepts(v any) bool {
	if v == nil {
		return true
	}
	switch s.kind {
	case stringKind:
		_, ok := v.(string)
		return ok
	case boolKind:
		_, ok := v.(bool)
		return ok
	case numberKind:
		switch v.(type) {
		case int64, float64:
			return true
		}
		return false
	case structKind, mapKind:
		_, ok := v.(map[string]any)
		return ok
	case listKind:
		_, ok := v.([]any)
		return ok
	default:
		return true
	}
}
