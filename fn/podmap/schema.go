// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

//go:generate go run ./gen

// Kind is what a field of the pod holds.
type Kind uint8

const (
	// anyKind is a field that is not known here, or one that reads several kinds, such as a quantity.
	anyKind Kind = iota
	stringKind
	boolKind
	numberKind
	// StructKind is a map whose keys are the fields of a type.
	StructKind
	mapKind
	// ListKind is a list of values of one type.
	ListKind
)

// Schema is the type of a value in a pod, with Kubernetes' patch rules: a tree made from the Go types. The fields of a
// struct are read when the first of them is asked for, because a pod has few of the types that it could have.
type Schema struct {
	Kind Kind
	// TypeName is the name of the Go type, such as Quantity.
	TypeName string
	// Elem is the type of a list's or map's elements.
	Elem *Schema
	// fields returns the fields of a struct by their names in JSON.
	fields func() map[string]*SchemaField
}

// Field returns a field of a struct, or nil if none has that name.
func (s *Schema) Field(name string) *SchemaField {
	if s.fields == nil {
		return nil
	}
	return s.fields()[name]
}

// SchemaField is one field of a struct.
type SchemaField struct {
	// Schema is the type of the field.
	Schema *Schema
	// index is the field's place in the Go type.
	index []int
	// IsPointer reports whether an empty value differs in meaning from an unset one.
	IsPointer bool
	// Merges reports whether the elements of a list are merged, and MergeKey is the key; "" means that they are
	// plain values.
	Merges   bool
	MergeKey string
	// omitsEmpty reports whether JSON of the Go type omits the field if the value is empty.
	omitsEmpty bool
	// retains reports whether a patch of an element of the list names the fields that stay.
	retains bool
	// list is the name of the field in Kubernetes' types where server-side apply identifies the elements of the list,
	// and keys are the fields by which it does; none where the elements are plain values.
	list string
	keys []string
}

// isAlwaysSerialized reports whether the JSON of Kubernetes' types has the field whenever it has what the field is in.
func (f *SchemaField) isAlwaysSerialized() bool { return !f.IsPointer && f.Schema.Kind == StructKind }

// mergesByOmitted reports whether the elements of a list are merged by a key that JSON of the Go types leaves out where
// it is empty, as the name of a pull secret.
func (f *SchemaField) mergesByOmitted() bool {
	if !f.Merges || f.MergeKey == "" || f.Schema.Elem == nil {
		return false
	}
	key := f.Schema.Elem.Field(f.MergeKey)
	return key != nil && key.omitsEmpty
}

// PodSchema returns the schema of a pod.
var PodSchema = sync.OnceValue(func() *Schema { return SchemaOf(reflect.TypeFor[corev1.Pod]()) })

// UnknownSchema is the one of fields newer than our types: maps merge and lists are replaced.
var UnknownSchema = &Schema{Kind: anyKind, TypeName: "unknown"}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// schemas has the schema of each type that was asked for. They are made from the types alone.
var schemas sync.Map

// SchemaOf returns the schema of a Go type.
func SchemaOf(t reflect.Type) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := schemas.Load(t); ok {
		return s.(*Schema)
	}
	s, _ := schemas.LoadOrStore(t, newSchema(t))
	return s.(*Schema)
}

func newSchema(t reflect.Type) *Schema {
	s := &Schema{TypeName: t.Name()}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return s
	}
	switch t.Kind() {
	case reflect.String:
		s.Kind = stringKind
	case reflect.Bool:
		s.Kind = boolKind
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Float64:
		s.Kind = numberKind
	case reflect.Map:
		s.Kind, s.Elem = mapKind, SchemaOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.Kind = stringKind
			break
		}
		s.Kind, s.Elem = ListKind, SchemaOf(t.Elem())
	case reflect.Struct:
		s.Kind = StructKind
		s.fields = sync.OnceValue(func() map[string]*SchemaField {
			fields := make(map[string]*SchemaField, t.NumField())
			addFields(fields, t, nil)
			return fields
		})
	}
	return s
}

// addFields adds the fields of a struct, which is at an index of another one, and of those that are inlined in it.
func addFields(fields map[string]*SchemaField, t reflect.Type, at []int) {
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
		field := &SchemaField{Schema: SchemaOf(f.Type), index: index, IsPointer: f.Type.Kind() == reflect.Pointer,
			omitsEmpty: strings.Contains(options, "omitempty")}
		if strategies := f.Tag.Get("patchStrategy"); strategies != "" {
			list := strings.Split(strategies, ",")
			field.Merges = slices.Contains(list, "merge")
			field.retains = slices.Contains(list, "retainKeys")
		}
		field.MergeKey = f.Tag.Get("patchMergeKey")
		id := t.Name() + "." + name
		if field.Schema.Kind == ListKind {
			if keys, ok := listKeys[id]; ok {
				field.list, field.keys = id, keys
			}
		}
		fields[name] = field
	}
}

// mapField returns the schema of a field that holds a map.
func (s *Schema) mapField(key string) *Schema {
	if s.Kind == mapKind {
		return s.Elem
	}
	if f := s.Field(key); f != nil {
		return f.Schema
	}
	return UnknownSchema
}

// listField returns the patch rule of a field that holds a list.
func (s *Schema) listField(key string) *SchemaField {
	if f := s.Field(key); f != nil && f.Schema.Kind == ListKind {
		return f
	}
	return &SchemaField{Schema: UnknownSchema}
}

// elem returns the schema of a list's elements.
func (s *Schema) elem() *Schema {
	if s.Elem == nil {
		return UnknownSchema
	}
	return s.Elem
}

// typeError returns an error for a value that does not have the type that Kubernetes expects.
func (s *Schema) typeError(v any) error {
	want := map[Kind]string{
		stringKind: "a string", boolKind: "a bool", numberKind: "a number", StructKind: "a map", mapKind: "a map",
		ListKind: "a list",
	}[s.Kind]
	return fmt.Errorf("it has to be %s and is %s", want, Describe(v))
}

// Accepts reports whether a value has the schema's type. Null is accepted everywhere.
func (s *Schema) Accepts(v any) bool {
	if v == nil {
		return true
	}
	switch s.Kind {
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
	case StructKind, mapKind:
		_, ok := v.(map[string]any)
		return ok
	case ListKind:
		_, ok := v.([]any)
		return ok
	default:
		return true
	}
}

// ContainerSchema returns the schema of a container.
func ContainerSchema() *Schema {
	return PodSchema().Field("spec").Schema.Field(Containers).Schema.Elem
}
