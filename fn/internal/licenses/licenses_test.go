// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

const isc = `Copyright (c) 2026 Somebody

Permission to use, copy, modify, and distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`

const wtfpl = `DO WHAT THE FUCK YOU WANT TO PUBLIC LICENSE
Version 2, December 2004

Copyright (C) 2004 Sam Hocevar <sam@hocevar.net>

Everyone is permitted to copy and distribute verbatim or modified
copies of this license document, and changing it is allowed as long
as the name is changed.

DO WHAT THE FUCK YOU WANT TO PUBLIC LICENSE
TERMS AND CONDITIONS FOR COPYING, DISTRIBUTION AND MODIFICATION

0. You just DO WHAT THE FUCK YOU WANT TO.
`

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		files []licenseFile
		want  string // part of the error; empty means that all is well
	}{
		"allowed":              {files: []licenseFile{{"LICENSE", []byte(isc)}}},
		"allowed with notice":  {files: []licenseFile{{"LICENSE", []byte(isc)}, {"NOTICE", []byte("Made by somebody.")}}},
		"not allowed":          {files: []licenseFile{{"LICENSE", []byte(wtfpl)}}, want: "WTFPL"},
		"fork with its own":    {files: []licenseFile{{"LICENSE", []byte(isc)}, {"fork/COPYING", []byte(wtfpl)}}, want: "fork/COPYING holds WTFPL"},
		"only a notice":        {files: []licenseFile{{"NOTICE", []byte("Made by somebody.")}}, want: "no licence that is known"},
		"nothing":              {want: "example.com/m@v1.0.0: no licence"},
		"terms of its own":     {files: []licenseFile{{"LICENSE", []byte("You may use this on Sundays, but tell nobody.")}}, want: "0% of LICENSE"},
		"known text and terms": {files: []licenseFile{{"LICENSE", []byte(isc + strings.Repeat("But not on Sundays, nor on other days. ", 80))}}, want: "of LICENSE is text"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkModuleLicenses([]module{{path: "example.com/m", version: "v1.0.0", files: tt.files}})
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestLinked(t *testing.T) {
	modules, err := findLinkedModules(context.Background(), []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) != 1 || modules[0].path != "github.com/google/licensecheck" || len(modules[0].files) == 0 {
		t.Fatalf("got %+v, want licensecheck alone, with its licence", modules)
	}
	if err := checkModuleLicenses(modules); err != nil {
		t.Error(err)
	}
	var b bytes.Buffer
	writeLicenseTexts(&b, modules)
	if !strings.Contains(b.String(), "github.com/google/licensecheck "+modules[0].version+", LICENSE\n") {
		t.Errorf("the texts do not name the module:\n%s", b.String())
	}
}
