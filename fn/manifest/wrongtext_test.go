// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
)

// TestTextsThatAreNoManifestsAreNamed: the message names what the file is, and what to do.
func TestTextsThatAreNoManifestsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n": "f.yaml:1: it is a pointer of Git LFS and not the file itself; fetch that with git lfs pull",
		"<!DOCTYPE html>\n<html><body>404: Not Found</body></html>\n":               "f.yaml:1: it is HTML or XML and no manifest",
		"kind: Deployment\nspec:\n\u00a0 replicas: 3\n  paused: true\n":             "f.yaml:3: the line is indented with a non-breaking space (U+00A0); replace it by a space",
		"\xff\xfe\x00\x00a\x00\x00\x00":                                             "f.yaml:1: found the byte order mark of UTF-32; save the file as UTF-8",
		"kind: Deployment\nmetadata: {name: \"caf\xe9\"}\n":                         "f.yaml:2: found the byte 0xe9, which is not UTF-8; save the file as UTF-8",
	} {
		file, err := manifest.Parse("f.yaml", []byte(text))
		if err == nil {
			for _, doc := range file.Docs {
				if _, wrong := doc.Object(); wrong != nil {
					err = wrong
				}
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have %v, want %q", text, err, want)
		}
	}
}
