// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"reflect"
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

// schema is the type of a value in a pod, with Kubernetes' patch rules: one immutable tree, made from the Go types.
type schema struct {
	kind   kind
	name   string
	fields map[string]*schemaField
	// elem is the type of a list's or map's elements.
	elem *schema
}

// schemaField is one field of a struct.
type schemaField struct {
	schema *schema
	// pointer says that an empty value means something else than none.
	pointer  bool
	mergeKey string
	merge    bool
	meta     strategicpatch.PatchMeta
}

// alwaysThere says that the JSON of Kubernetes' types has the field whenever it has what the field is in.
func (f *schemaField) alwaysThere() bool { return !f.pointer && f.schema.kind == structKind }

// podSchema is the schema of a pod. It is made once, from the types alone.
var podSchema = sync.OnceValue(func() *schema {
	b := schemaBuilder{seen: map[reflect.Type]*schema{}}
	return b.of(reflect.TypeFor[corev1.Pod]())
})

// unknownSchema is the one of fields newer than our types: maps merge and lists are replaced.
var unknownSchema = &schema{kind: anyKind, name: "unknown"}

type schemaBuilder struct{ seen map[reflect.Type]*schema }

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (b schemaBuilder) of(t reflect.Type) *schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := b.seen[t]; ok {
		return s
	}
	s := &schema{name: t.Name()}
	b.seen[t] = s
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
		s.kind, s.elem = mapKind, b.of(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.kind = stringKind
			break
		}
		s.kind, s.elem = listKind, b.of(t.Elem())
	case reflect.Struct:
		s.kind, s.fields = structKind, map[string]*schemaField{}
		b.structFields(t, s)
	}
	return s
}

func (b schemaBuilder) structFields(t reflect.Type, s *schema) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && (name == "" || strings.Contains(options, "inline")) {
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			b.structFields(embedded, s)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		field := &schemaField{schema: b.of(f.Type), pointer: f.Type.Kind() == reflect.Pointer}
		if strategies := f.Tag.Get("patchStrategy"); strategies != "" {
			list := strings.Split(strategies, ",")
			field.meta.SetPatchStrategies(list)
			for _, strategy := range list {
				field.merge = field.merge || strategy == "merge"
			}
		}
		field.mergeKey = f.Tag.Get("patchMergeKey")
		field.meta.SetPatchMergeKey(field.mergeKey)
		s.fields[name] = field
	}
}

// LookupPatchMetadataForStruct is the patch rule of a field that holds a map.
func (s *schema) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	if s.kind == mapKind {
		return s.elem, strategicpatch.PatchMeta{}, nil
	}
	if f, ok := s.fields[key]; ok {
		return f.schema, f.meta, nil
	}
	return unknownSchema, strategicpatch.PatchMeta{}, nil
}

// LookupPatchMetadataForSlice is the patch rule of a field that holds a list.
func (s *schema) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	f, ok := s.fields[key]
	if !ok || f.schema.kind != listKind {
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
