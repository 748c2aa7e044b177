// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package policies holds the policies that come with Prerig, one InjectionPolicy a file, as bytes. It does not
// decode them and reads no files at run time.
package policies

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

const suffix = ".yaml"

// Get returns the text of a policy by its name, such as istio, and whether it exists.
func Get(name string) ([]byte, bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	data, err := files.ReadFile(name + suffix)
	return data, err == nil
}

// Names returns the names of all policies, sorted.
func Names() []string {
	found, err := fs.Glob(files, "*"+suffix)
	if err != nil {
		return nil // only a malformed pattern fails
	}
	for i, name := range found {
		found[i] = strings.TrimSuffix(name, suffix)
	}
	return found
}
