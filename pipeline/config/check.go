// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// checker finds what is wrong with a configuration file, each with its line and key: what decodes it knows neither, and
// takes a list for its first element and true for 1.
type checker struct {
	file string
	errs []error
}

// checkFile says everything that is wrong with the form of a file.
func checkFile(file string, text []byte) error {
	c := &checker{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading the configuration %s: %w", file, err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		c.add(&more, "", "expected one document, found another one")
		return errors.Join(c.errs...)
	}
	c.mapping(doc.Content[0], "", reflect.TypeFor[Config]())
	return errors.Join(c.errs...)
}

func (c *checker) add(at *yaml.Node, key, format string, args ...any) {
	if key != "" {
		key += ": "
	}
	where := ""
	if at.Line > 0 {
		where = fmt.Sprintf("line %d: ", at.Line)
	}
	c.errs = append(c.errs, fmt.Errorf("reading the configuration %s: %s%s%s", c.file, where, key, fmt.Sprintf(format, args...)))
}

// mapping checks the keys of a struct. Keys may be in any case, as those of variables are.
func (c *checker) mapping(n *yaml.Node, prefix string, t reflect.Type) {
	if n = target(n); empty(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		c.add(n, strings.TrimSuffix(prefix, "."), "expected keys and their values, found %s", kindOf(n))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			continue // what it brings is checked where it stands, if that is read
		}
		name := strings.ToLower(key.Value)
		if line, ok := lines[name]; ok {
			c.add(key, prefix+key.Value, "is given in line %d already", line)
			continue
		}
		lines[name] = key.Line
		field, ok := fieldOf(t, name)
		if !ok {
			c.add(key, prefix+key.Value, "unknown key; known here: %s", strings.Join(names(t), ", "))
			continue
		}
		c.value(value, prefix+name, field)
	}
}

func (c *checker) value(n *yaml.Node, key string, t reflect.Type) {
	if n = target(n); empty(n) {
		return
	}
	switch {
	case t.Kind() == reflect.Struct:
		c.mapping(n, key+".", t)
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for i, element := range n.Content {
			c.value(element, fmt.Sprintf("%s[%d]", key, i), t.Elem())
		}
	case t.Kind() == reflect.Slice && (t.Elem().Kind() == reflect.Struct || n.Kind != yaml.ScalarNode):
		c.add(n, key, "expected a list, found %s", kindOf(n))
	case t.Kind() == reflect.Slice: // texts with commas between them, as in a variable
	case n.Kind != yaml.ScalarNode:
		c.add(n, key, "%s, found %s", expected(t), kindOf(n))
	case n.Tag == "!!bool" && t.Kind() != reflect.Bool && t.Kind() != reflect.String || !readable(n.Value, t):
		c.add(n, key, "%s, found %q", expected(t), n.Value)
	}
}

// checkVariables says which variables cannot be read. What a flag sets as well does not count.
func checkVariables(byFlag func(key string) bool) error {
	var errs []error
	check := func(key string, t reflect.Type) {
		text := os.Getenv(variable(key))
		switch {
		case text == "" || byFlag(key):
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			errs = append(errs, fmt.Errorf("reading the variable %s: %s can only be given in the file", variable(key), key))
		case t.Kind() != reflect.Slice && !readable(text, t):
			errs = append(errs, fmt.Errorf("reading the variable %s: %s, found %q", variable(key), expected(t), text))
		}
	}
	for _, key := range keys(reflect.TypeFor[Config](), "") {
		t := reflect.TypeFor[Config]()
		for _, part := range strings.Split(key, ".") {
			t, _ = fieldOf(t, part)
		}
		check(key, t)
	}
	return errors.Join(errs...)
}

// readable reports whether the text of a value can be read as its type. A number is read as a time too: what it lacks is said
// with the other limits of each time.
func readable(text string, t reflect.Type) bool {
	var err error
	switch {
	case t == reflect.TypeFor[time.Duration]():
		if _, err = strconv.ParseInt(text, 0, 64); err != nil {
			_, err = time.ParseDuration(text)
		}
	case t.Kind() == reflect.Int:
		_, err = strconv.ParseInt(text, 0, 64)
	case t.Kind() == reflect.Float64:
		_, err = strconv.ParseFloat(text, 64)
	case t.Kind() == reflect.Bool:
		_, err = strconv.ParseBool(text)
	}
	return err == nil
}

func expected(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "expected a time such as 5s"
	case t.Kind() == reflect.Int:
		return "expected a whole number"
	case t.Kind() == reflect.Float64:
		return "expected a number"
	case t.Kind() == reflect.Bool:
		return "expected true or false"
	}
	return "expected a text"
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("mapstructure") == name {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

func names(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("mapstructure"))
	}
	sort.Strings(out)
	return out
}

func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func empty(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.Value)
}
