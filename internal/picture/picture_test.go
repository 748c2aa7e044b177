// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/internal/moduleroot"
)

// TestPictureIsCurrent compares the picture with the output that it shows: make generate draws it again.
func TestPictureIsCurrent(t *testing.T) {
	root, err := moduleroot.Dir()
	if err != nil {
		t.Fatal(err)
	}
	review, err := os.ReadFile(filepath.Join(root, Source))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Review(string(review))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, Target))
	if err != nil || string(got) != string(want) {
		t.Errorf("%s is not drawn from %s (%v): run make generate", Target, Source, err)
	}
	text := textOf(t, got)
	for line := range strings.Lines(string(review)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "@@"))
		if strings.HasPrefix(line, "```") || strings.ContainsAny(line, "`*#") {
			continue
		}
		if !strings.Contains(text, line) {
			t.Errorf("the picture lacks the line %q", line)
		}
	}
}

// TestReviewEscapes draws text that has a meaning in XML.
func TestReviewEscapes(t *testing.T) {
	drawn, err := Review("**1 <script>**\n\n```diff\n-a & b\n```\n- `x/proxyv2:1` → `x/proxyv2:2` in 1 workload\n")
	if err != nil {
		t.Fatal(err)
	}
	if text := textOf(t, drawn); !strings.Contains(text, "1 <script>") || !strings.Contains(text, "-a & b") {
		t.Errorf("the text is %q", text)
	}
	if _, err := Review("**nothing changed**\n"); err == nil {
		t.Error("a review without an upgrade was drawn")
	}
}

// textOf returns the text of a picture, which must be well-formed XML.
func textOf(t *testing.T, svg []byte) string {
	t.Helper()
	var out strings.Builder
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			out.Write(text)
		}
	}
}
