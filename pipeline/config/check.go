// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// decoder reads a configuration as the variables are read too: keys in any case, values as texts.
var decoder = strict.Decoder{Tag: "mapstructure", Optional: true, NullIsUnset: true, Loose: true}

// manifestError returns an error if a document is a Kubernetes object, which is no configuration.
func manifestError(document any) error {
	values, _ := document.(map[string]any)
	kind, _ := values["kind"].(string)
	if _, ok := values["apiVersion"]; !ok || kind == "" {
		return nil
	}
	hint := "examples/daemon/prerig.yaml shows the keys of a configuration"
	switch kind {
	case "RenderPipeline":
		hint = "specify its directory with --pipelines"
	case "InjectionPolicy":
		hint = "specify its directory with --policies"
	}
	return fmt.Errorf("it is a %s and not a configuration of prerig serve; %s", kind, hint)
}

// readFile returns the values of a configuration file, with the list of pipelines_git separate from the rest, or
// all errors of its form, each with its line and key: the code that merges file, variables and flags knows neither,
// and reads a list as its first element and true as 1.
func readFile(file string, text []byte) (values map[string]any, repositories []PipelinesGit, err error) {
	docs, err := strict.ReadAll(text, maxFile)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration %s: %w", file, err)
	}
	switch len(docs) {
	case 0:
		return nil, nil, nil
	case 1:
	default:
		if err := manifestError(docs[0].Value); err != nil {
			return nil, nil, fmt.Errorf("reading the configuration %s: %w", file, err)
		}
		return nil, nil, fmt.Errorf("reading the configuration %s: line %d: expected one document, found another one", file, docs[1].Line())
	}
	if err := manifestError(docs[0].Value); err != nil {
		return nil, nil, fmt.Errorf("reading the configuration %s: %w", file, err)
	}
	ps := strict.Problems{List: docs[0].Duplicates(strings.ToLower)}
	values, _ = docs[0].Value.(map[string]any)
	values, repositories = splitPipelinesGit(values, &ps)
	if values == nil {
		decoder.Decode(nil, docs[0].Value, &Config{}, &ps)
	} else {
		decoder.Decode(nil, values, &Config{}, &ps)
	}
	ps.Locate(docs[0])
	var errs []error
	for _, problem := range ps.List {
		errs = append(errs, fmt.Errorf("reading the configuration %s: %s", file, problem))
	}
	return values, repositories, errors.Join(errs...)
}

// splitPipelinesGit removes the list of pipelines_git from a file's values, because a key has one type for flags and
// variables. A map stays.
func splitPipelinesGit(values map[string]any, ps *strict.Problems) (rest map[string]any, out []PipelinesGit) {
	rest = maps.Clone(values)
	for key, value := range values {
		list, ok := value.([]any)
		if !ok || !strings.EqualFold(key, "pipelines_git") {
			continue
		}
		delete(rest, key)
		for i, one := range list {
			g := Default().PipelinesGit
			decoder.Decode([]any{key, i}, one, &g, ps)
			out = append(out, g)
		}
	}
	return rest, out
}

// checkVariables reports which variables cannot be read. What a flag sets as well does not count.
func checkVariables(byFlag func(key string) bool) error {
	var errs []error
	check := func(key string, t reflect.Type) {
		text := os.Getenv(variableName(key))
		switch {
		case text == "" || byFlag(key):
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			errs = append(errs, fmt.Errorf("reading the variable %s: %s can only be given in the file", variableName(key), key))
		default:
			ps := strict.Problems{}
			decoder.Decode(nil, text, reflect.New(t).Interface(), &ps)
			for _, problem := range ps.List {
				errs = append(errs, fmt.Errorf("reading the variable %s: %s", variableName(key), problem.Message))
			}
		}
	}
	for _, key := range listKeys(reflect.TypeFor[Config](), "") {
		t := reflect.TypeFor[Config]()
		for _, part := range strings.Split(key, ".") {
			t, _ = fieldOf(t, part)
		}
		check(key, t)
	}
	return errors.Join(errs...)
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("mapstructure") == name {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}
