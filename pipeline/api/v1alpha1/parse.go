// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// maxDocument bounds a file, so that aliases cannot make a small one large.
const maxDocument = 1 << 20

// Parse decodes one RenderPipeline strictly, sets its defaults and validates it. Errors name the key's path and line.
func Parse(data []byte) (*RenderPipeline, error) {
	all, err := ParseAll(data)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("expected one %s, found %d", Kind, len(all))
	}
	return all[0], nil
}

// ParseAll decodes every document of a YAML stream, each of which must be a RenderPipeline. Further checks are made after
// the validation; a FieldError of theirs gets the line of its field.
func ParseAll(data []byte, checks ...func(*RenderPipeline) error) ([]*RenderPipeline, error) {
	docs, err := strict.ReadAll(data, maxDocument)
	if err != nil {
		return nil, fmt.Errorf("reading RenderPipelines: %w", err)
	}
	var out []*RenderPipeline
	for _, doc := range docs {
		pipeline, err := fromDocument(doc)
		if err != nil {
			return nil, err
		}
		for _, check := range checks {
			if err := check(pipeline); err != nil {
				return nil, addLine(err, doc)
			}
		}
		out = append(out, pipeline)
	}
	return out, nil
}

func fromDocument(doc *strict.Document) (*RenderPipeline, error) {
	obj, _ := doc.Value.(map[string]any)
	if err := checkType(obj); err != nil {
		return nil, fmt.Errorf("line %d: %w", doc.Line(), err)
	}
	// Aliases are rejected: a pipeline is short, and they only obscure its content.
	ps := strict.Problems{List: append(doc.Duplicates(nil), doc.Aliases()...)}
	pipeline := &RenderPipeline{}
	// Tools add metadata of their own, and the status is not the user's. Validate checks for required fields.
	strict.Decoder{Optional: true, NullIsUnset: true, Open: []string{"Metadata"}, Ignored: []string{"RenderPipelineStatus"}}.Decode(nil, obj, pipeline, &ps)
	if len(ps.List) > 0 {
		ps.Locate(doc)
		errs := make([]error, len(ps.List))
		for i, problem := range ps.List {
			errs[i] = errors.New(problem.String())
		}
		return nil, errors.Join(errs...)
	}
	pipeline.Default()
	if err := pipeline.Validate(); err != nil {
		return nil, addLine(err, doc)
	}
	return pipeline, nil
}

func checkType(obj map[string]any) error {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	if kind == "" {
		return errors.New("not an object with apiVersion and kind")
	}
	if kind != Kind || apiVersion != APIVersion {
		return fmt.Errorf("found %s %s, expected %s %s", apiVersion, kind, APIVersion, Kind)
	}
	return nil
}

// addLine adds the line of the key that a validation error is about.
func addLine(err error, doc *strict.Document) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var out []error
		for _, one := range joined.Unwrap() {
			out = append(out, addLine(one, doc))
		}
		return errors.Join(out...)
	}
	var field *FieldError
	if !errors.As(err, &field) {
		return err
	}
	ps := strict.Problems{}
	ps.Add(pathOf(field.Path), "")
	ps.Locate(doc)
	return fmt.Errorf("line %d: %w", max(ps.List[0].Line, doc.Line()), err)
}

// pathOf reads a path such as spec.publish[0].git.
func pathOf(text string) []any {
	var path []any
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if i, err := strconv.Atoi(part); err == nil {
			path = append(path, i)
			continue
		}
		path = append(path, part)
	}
	return path
}
