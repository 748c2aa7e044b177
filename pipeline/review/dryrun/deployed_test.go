// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestDeployed: what deploys each other has a first one that is not deployed, and what it leads to is.
func TestDeployed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		directories Directories
		keys        string
		want        string
	}{
		"none":             {nil, "a b", ""},
		"one of another":   {Directories{"b": {"a"}}, "a b", "b"},
		"a chain":          {Directories{"b": {"a"}, "c": {"b"}}, "c b a", "b c"},
		"itself":           {Directories{"a": {"a"}}, "a", ""},
		"each other":       {Directories{"a": {"b"}, "b": {"a"}, "c": {"b"}}, "a b c", "b c"},
		"a root of both":   {Directories{"a": {"b", "r"}, "b": {"a"}}, "a b r", "a b"},
		"a file":           {Directories{"d": {"a"}}, "a d/x.yaml", "d/x.yaml"},
		"twice":            {Directories{"b": {"a", "a"}}, "a a b", "b"},
		"what has no keys": {Directories{"b": {"gone"}}, "b", "b"},
	} {
		got := strings.Join(slices.Sorted(maps.Keys(c.directories.Deployed(strings.Fields(c.keys)))), " ")
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
