// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"path"
	"slices"
)

// Directories maps directories to the pipelines whose Applications are rendered from them.
type Directories map[string][]string

// DirectoriesOf returns the directories that the Applications of results are rendered from.
func DirectoriesOf(results []Result) Directories {
	out := Directories{}
	for _, r := range results {
		out.add(r)
	}
	return out
}

func (d Directories) add(r Result) {
	response := r.Response()
	if response == nil {
		return
	}
	for _, unit := range response.Units {
		for _, dir := range unit.Directories {
			d[dir] = append(d[dir], r.Entry.Key)
		}
	}
}

// Deployed returns the pipelines, by their keys, that Applications of other ones deploy. Pipelines may deploy each other,
// as Argo CD may deploy itself: of these, the first by its key is none of them.
func (d Directories) Deployed(keys []string) map[string]bool {
	for _, by := range d {
		keys = append(keys, by...)
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	deploys := map[string][]string{}
	isRoot := map[string]bool{}
	for _, key := range keys {
		by := d[key]
		if path.Ext(key) != "" { // a file
			by = slices.Concat(by, d[path.Dir(key)])
		}
		isRoot[key] = true
		for _, other := range by {
			if other != key {
				deploys[other] = append(deploys[other], key)
				isRoot[key] = false
			}
		}
	}
	out, seen := map[string]bool{}, map[string]bool{}
	follow := func(root string) {
		for next := []string{root}; len(next) > 0; next = next[1:] {
			for _, key := range deploys[next[0]] {
				if !seen[key] && key != root {
					seen[key], out[key] = true, true
					next = append(next, key)
				}
			}
		}
		seen[root] = true
	}
	for _, roots := range []bool{true, false} {
		for _, key := range keys {
			if !seen[key] && isRoot[key] == roots {
				follow(key)
			}
		}
	}
	return out
}
