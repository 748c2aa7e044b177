// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/fn/workload"
)

// wherePlaced names where values of a configuration come from.
type wherePlaced struct {
	flags *pflag.FlagSet
	file  string
	text  []byte
}

// placeErrors returns the errors about keys of a configuration with what sets each: a flag, a variable, or a line of the
// file.
func (w wherePlaced) placeErrors(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var out []error
	for _, one := range joined.Unwrap() {
		key, _, ok := strings.Cut(strings.TrimPrefix(one.Error(), "configuration "), ": ")
		if place := w.placeOf(key); ok && place != "" {
			one = fmt.Errorf("%s: %w", place, one)
		}
		out = append(out, one)
	}
	return errors.Join(out...)
}

// Placed returns an error about the value of a key with what sets the key: a flag, a variable, or a line of the file.
func (c *Config) Placed(key string, err error) error {
	err = fmt.Errorf("configuration %s: %w", key, err)
	if place := c.places.placeOf(key); place != "" {
		err = fmt.Errorf("%s: %w", place, err)
	}
	return err
}

// placeOf returns what sets a key, or "" where it has its default.
func (w wherePlaced) placeOf(key string) string {
	for name, of := range flagKeys {
		if of == key && w.flags != nil && w.flags.Changed(name) {
			return "--" + name
		}
	}
	if os.Getenv(variableName(key)) != "" {
		return "the variable " + variableName(key)
	}
	doc, err := strict.ReadOne(w.text, maxFile)
	if err != nil || w.file == "" {
		return ""
	}
	path := workload.ParseField(key)
	if _, _, ok := doc.Locate(path[0]); !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", w.file, doc.LineIn(path, 0))
}
