// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/result"
)

// ResourceListKind is the kind of the KRM functions specification's wire format.
const ResourceListKind = "ResourceList"

// resourceListVersions are the versions of it that are read. They have the same fields.
var resourceListVersions = []string{"config.kubernetes.io/v1", "config.kubernetes.io/v1beta1"}

// ResourceList is a ResourceList of the KRM functions specification whose text is kept.
type ResourceList struct {
	APIVersion     string
	Items          []*Document
	FunctionConfig *Document // nil without one
	Results        result.Results

	doc *Document
	lay *listLayout
}

// ParseResourceList reads a ResourceList without decoding its items. Errors are for input that is none, that has another
// apiVersion, or more than one document.
func ParseResourceList(src []byte) (*ResourceList, error) {
	f, err := Parse("", src)
	if err != nil {
		return nil, fmt.Errorf("reading the ResourceList: %w", err)
	}
	var doc *Document
	for _, d := range f.Docs {
		if d.Empty() {
			continue
		}
		if doc != nil {
			return nil, fmt.Errorf("reading the ResourceList: line %d: found a second document", d.Line())
		}
		doc = d
	}
	if doc == nil {
		return nil, fmt.Errorf("reading the ResourceList: the input is empty")
	}
	if len(f.Docs) > 1 { // keep the documents around it
		whole := *doc
		doc = &whole
		doc.text, doc.line = string(src), 1
	}
	return newResourceList(doc)
}

func newResourceList(doc *Document) (*ResourceList, error) {
	lay, err := doc.findLayout()
	if err != nil {
		return nil, err
	}
	if lay == nil || lay.kind != ResourceListKind {
		found := "no object"
		if lay != nil {
			found = strconv.Quote(lay.kind)
		}
		return nil, fmt.Errorf("reading the ResourceList: expected kind %q and found %s", ResourceListKind, found)
	}
	rl := &ResourceList{APIVersion: lay.api, doc: doc, lay: lay}
	if lay.api != resourceListVersions[0] && lay.api != resourceListVersions[1] {
		return nil, fmt.Errorf("reading the ResourceList: found apiVersion %q; %s are supported", lay.api, strings.Join(resourceListVersions, " and "))
	}
	if _, there := lay.keys["items"]; there && !lay.hasList {
		return nil, fmt.Errorf("reading the ResourceList: items is not a list")
	}
	rl.Items = lay.elementsOf(doc)
	if fc, ok := lay.fieldOf(doc, "functionConfig"); ok {
		if v, err := fc.decodeAny(); err != nil {
			return nil, fmt.Errorf("reading functionConfig: %w", err)
		} else if v != nil {
			rl.FunctionConfig = fc
		}
	}
	if rs, ok := lay.fieldOf(doc, "results"); ok {
		if rl.Results, err = readResults(rs); err != nil {
			return nil, err
		}
	}
	return rl, nil
}

// fieldOf returns the value of a top-level key of a list as a document.
func (lay *listLayout) fieldOf(list *Document, key string) (*Document, bool) {
	s, ok := lay.keys[key]
	if !ok {
		return nil, false
	}
	s.dash--
	line := list.line + strings.Count(list.text[:s.start], "\n")
	return &Document{path: list.path, documentText: s.textIn(list, line, &listAnchors{})}, true
}

func readResults(d *Document) (result.Results, error) {
	v, err := d.decodeAny()
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	js, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	var rs result.Results
	if err := json.Unmarshal(js, &rs); err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	for i := range rs {
		if f := rs[i].File; f != nil {
			f.Line, _ = strconv.Atoi(rs[i].Tags[result.TagLine])
		}
	}
	return rs, nil
}

// resultValues returns the results as they go on the wire.
func resultValues(rs result.Results) []any {
	out := make([]any, 0, len(rs))
	for _, r := range rs {
		if r.Severity == "" {
			r.Severity = result.Error
		}
		if r.File != nil && r.File.Line > 0 {
			r.Tags = withTag(r.Tags, result.TagLine, strconv.Itoa(r.File.Line))
		}
		if len(r.Places) > 0 {
			lines := make([]string, 0, len(r.Places))
			for _, p := range r.Places {
				lines = append(lines, p.String())
			}
			r.Tags = withTag(r.Tags, result.TagObjects, strings.Join(lines, "\n"))
		}
		out = append(out, normalValue(r))
	}
	return out
}

// withTag returns a copy of the tags with one more.
func withTag(tags map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(tags)+1)
	maps.Copy(out, tags)
	out[key] = value
	return out
}
