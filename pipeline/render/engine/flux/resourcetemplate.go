// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"fmt"
	"hash/adler32"
	"maps"
	"strings"
	"sync"
	"text/template"
	"unicode"

	sprig "github.com/go-task/slim-sprig/v3"
	"github.com/gosimple/slug"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/release"
)

// maxPermutations is how many combinations of inputs the operator accepts.
const maxPermutations = 10000

// permute returns each combination of an input of every provider, by the providers' names.
func (s *ResourceSet) permute(providers []inputProvider) ([]map[string]any, error) {
	out := []map[string]any{nil}
	ids := []string{""}
	used := 0
	for _, provider := range providers {
		if len(provider.inputs) == 0 && !s.spec.InputStrategy.IncludeEmptyProviders {
			continue
		}
		used++
		name := templateKey(provider.name)
		if name == "" {
			return nil, release.FieldError(s.object, "spec.inputStrategy", "the name of %s has no letter or digit that templates can use", provider.name)
		}
		if len(out)*len(provider.inputs) > maxPermutations {
			return nil, release.FieldError(s.object, "spec.inputStrategy", "makes more than %d combinations", maxPermutations)
		}
		var next []map[string]any
		var nextIDs []string
		for i, combined := range out {
			for j, input := range provider.inputs {
				more := maps.Clone(combined)
				if more == nil {
					more = map[string]any{}
				}
				more[name] = input
				next, nextIDs = append(next, more), append(nextIDs, strings.TrimPrefix(fmt.Sprintf("%s/%s=%d", ids[i], name, j), "/"))
			}
		}
		out, ids = next, nextIDs
	}
	if used == 0 {
		return nil, nil
	}
	for i := range out {
		out[i]["id"] = fmt.Sprint(adler32.Checksum([]byte(ids[i])))
	}
	return out, nil
}

// templateKey returns a name as templates can use it: lower case, with _ between its words.
func templateKey(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || unicode.IsSpace(r) || unicode.IsPunct(r) })
	var out []string
	for _, word := range words {
		word = strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
				return r
			}
			return -1
		}, word)
		if word != "" {
			out = append(out, word)
		}
	}
	return strings.Join(out, "_")
}

// resourceText returns a resource as the text that is its template.
func resourceText(resource any) (string, error) {
	text, err := yaml.Marshal(resource)
	return string(text), err
}

// execute returns the objects that a template makes of an input.
func (s *ResourceSet) execute(field, text string, input map[string]any) ([]map[string]any, error) {
	parsed, err := template.New("resourceset").Delims("<<", ">>").Funcs(templateFunctions()).Option("missingkey=error").
		Funcs(template.FuncMap{"inputs": func() any { return input }}).Parse(text)
	if err != nil {
		return nil, release.FieldError(s.object, field, "%v", err)
	}
	var b strings.Builder
	if err := parsed.Execute(&b, nil); err != nil {
		if strings.Contains(err.Error(), `no entry for key "id"`) && len(s.spec.InputsFrom) > 0 {
			return nil, &LeftError{field, "it uses the id of an input, which the operator makes of the UID of its provider"}
		}
		return nil, release.FieldError(s.object, field, "%v", err)
	}
	file, err := manifest.Parse("", []byte(b.String()))
	if err != nil {
		return nil, release.FieldError(s.object, field, "makes no YAML: %v", err)
	}
	var out []map[string]any
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		objects, err := objectsOf(doc)
		if err != nil {
			return nil, release.FieldError(s.object, field, "makes no object: %v", err)
		}
		for _, object := range objects {
			if ref := result.RefTo(object); ref.Kind == "" || ref.Name == "" || ref.APIVersion == "" {
				return nil, release.FieldError(s.object, field, "makes an object without apiVersion, kind or name")
			}
			out = append(out, object)
		}
	}
	return out, nil
}

// objectsOf returns the object of a document, or the elements of a list.
func objectsOf(doc *manifest.Document) ([]map[string]any, error) {
	elements, isList, err := doc.Items()
	if err != nil {
		return nil, err
	}
	if !isList {
		object, err := doc.Object()
		return []map[string]any{object}, err
	}
	var out []map[string]any
	for _, element := range elements {
		object, err := element.Object()
		if err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

// templateFunctions are those of the operator: the ones of sprig that depend on nothing else, slugify and toYaml.
var templateFunctions = sync.OnceValue(func() template.FuncMap {
	slug.MaxLength, slug.EnableSmartTruncate = 63, true // the length of a label's value
	functions := sprig.HermeticTxtFuncMap()
	functions["slugify"] = slug.Make
	functions["mustToYaml"] = func(v any) (string, error) { return resourceText(v) }
	functions["toYaml"] = func(v any) string {
		text, err := resourceText(v)
		if err != nil {
			return ""
		}
		return text
	}
	return functions
})
