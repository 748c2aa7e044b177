// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpdate: a patch replaces the release before it, a minor is added, and what cannot be listed stays.
func TestUpdate(t *testing.T) {
	t.Parallel()
	root, place := t.TempDir(), Places[0]
	name := filepath.Join(root, place.File)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	const before = `	{"a", "example.com/a", apache, []string{"v1.0.0", "v1.1.0"}, []string{"crds"}},
	{
		"b", "example.com/b", mit, []string{"v1.1.0"},
	},
	{"c", "https://example.com/c", apache, []string{"v3.0.0"}, []string{bases}},
	{"d", "example.com/d", apache, []string{"v1.0.0"}, []string{bases}},
`
	if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	list := func(_ context.Context, source string) ([]string, error) {
		switch source {
		case "example.com/a":
			return []string{source, "v1.1.9", "v1.1.10", "v1.2.0-rc.1"}, nil
		case "example.com/b":
			return []string{"v1.1.0", "v1.2.0"}, nil
		case "example.com/d":
			return []string{"v1.0.0"}, nil
		}
		return nil, errors.New("refused")
	}
	found, err := Update(t.Context(), root, []Place{place}, list)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`"v1.0.0", "v1.1.0"}, []string{"crds"}`, `"v1.0.0", "v1.1.10"}, []string{"crds"}`, `mit, []string{"v1.1.0"}`, `mit, []string{"v1.1.0", "v1.2.0"}`).Replace(before)
	if string(text) != want {
		t.Errorf("it wrote\n%s", text)
	}
	if len(found) != 3 || found[2].Problem == nil || found[1].Newest != "v1.2.0" {
		t.Errorf("it found %v", found)
	}
}
