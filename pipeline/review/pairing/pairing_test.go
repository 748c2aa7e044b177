// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pairing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prerig/prerig/pipeline/review/pairing"
)

func configMap(name, value string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: shop\ndata:\n  a: %s\n",
		name, value)
}

type files = map[string][]byte

// TestPairs compares what builds have at both ends after objects were paired with what a reader has to see.
func TestPairs(t *testing.T) {
	const hash, other = "-k8h9kbb2mt", "-77dgd82b8b"
	for name, c := range map[string]struct {
		builds []*pairing.Build
		want   []string // BUILD PATH: added, deleted or modified
	}{
		"a renamed directory": {[]*pairing.Build{
			{Key: "a/x", Before: files{"c.yaml": configMap("c", "1")}},
			{Key: "b/x", After: files{"c.yaml": configMap("c", "1")}},
			{Key: "a/y", Before: files{"c.yaml": configMap("c", "2"), "d.yaml": configMap("d", "1")}},
			{Key: "b/y", After: files{"c.yaml": configMap("c", "3"), "d.yaml": configMap("d", "1")}},
		}, []string{"b/y c.yaml: modified"}},
		"an object that goes to another build": {[]*pairing.Build{
			{Key: "a", Before: files{"c.yaml": configMap("c", "1"), "d.yaml": configMap("d", "1")}, After: files{"d.yaml": configMap("d", "1")}},
			{Key: "b", Before: files{"e.yaml": configMap("e", "1")}, After: files{"e.yaml": configMap("e", "1"), "c.yaml": configMap("c", "1")}},
		}, nil},
		"two clusters": {[]*pairing.Build{
			{Key: "dev", Before: files{"c.yaml": configMap("c", "1"), "d.yaml": configMap("d", "1")}, After: files{"d.yaml": configMap("d", "1")}},
			{Key: "prod", Before: files{"d.yaml": configMap("d", "1")}, After: files{"c.yaml": configMap("c", "1"), "d.yaml": configMap("d", "1")}},
		}, []string{"dev c.yaml: deleted", "prod c.yaml: added"}},
		"an object that another unit has, too": {[]*pairing.Build{{Key: "a",
			Before: files{"one/c.yaml": configMap("c", "1"), "two/c.yaml": configMap("c", "1")},
			After:  files{"two/c.yaml": configMap("c", "1")},
		}}, nil},
		"an object that another unit has otherwise": {[]*pairing.Build{{Key: "a",
			Before: files{"one/c.yaml": configMap("c", "1"), "two/c.yaml": configMap("c", "2")},
			After:  files{"two/c.yaml": configMap("c", "2")},
		}}, []string{"a two/c.yaml: modified"}},
		"an object that a second unit has from now on": {[]*pairing.Build{{Key: "a",
			Before: files{"one/c.yaml": configMap("c", "1")},
			After:  files{"one/c.yaml": configMap("c", "1"), "two/c.yaml": configMap("c", "1")},
		}}, nil},
		"the same object in two clusters": {[]*pairing.Build{{Key: "a", Cluster: func(path string, _ bool) string { return path[:3] },
			Before: files{"one/c.yaml": configMap("c", "1"), "two/c.yaml": configMap("c", "1")},
			After:  files{"two/c.yaml": configMap("c", "1")},
		}}, []string{"a one/c.yaml: deleted"}},
		"another hash": {[]*pairing.Build{
			{Key: "a", Before: files{"c" + hash: configMap("c"+hash, "1")}, After: files{"c" + other: configMap("c"+other, "2")}},
		}, []string{"a c" + other + ": modified"}},
		"no hash": {[]*pairing.Build{
			{Key: "a", Before: files{"c-production": configMap("c-production", "1")}, After: files{"c-kubernetes": configMap("c-kubernetes", "2")}},
		}, []string{"a c-kubernetes: added", "a c-production: deleted"}},
		"paths that change places": {[]*pairing.Build{
			{Key: "a", Before: files{"1": configMap("c", "1"), "2": configMap("d", "1")}, After: files{"2": configMap("c", "1"), "1": configMap("d", "1")}},
		}, nil},
	} {
		pairing.Pair(c.builds)
		var got []string
		for _, b := range c.builds {
			for path, text := range b.Before {
				now, ok := b.After[path]
				switch {
				case !ok:
					got = append(got, fmt.Sprintf("%s %s: deleted", b.Key, path))
				case string(now) != string(text):
					got = append(got, fmt.Sprintf("%s %s: modified", b.Key, path))
				}
			}
			for path := range b.After {
				if _, ok := b.Before[path]; !ok {
					got = append(got, fmt.Sprintf("%s %s: added", b.Key, path))
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
