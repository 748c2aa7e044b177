// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

// addWritten compares the changed files, among those that no comparison has read, that would have been read by what cannot be rendered
// of results. It returns the other ones.
func (o *reviewOptions) addWritten(c *dryrun.Comparison, base, head *end, changed []string, results ...[]dryrun.Result) ([]string, error) {
	unrendered := unrenderedOf(slices.Concat(results...))
	if unrendered.Empty() || len(changed) == 0 {
		return changed, nil
	}
	owners := map[string]string{}
	for _, at := range []*end{base, head} {
		files, err := discover.FilesOf(sourcetree.NewView(at.snapshot.Tree, sourcetree.Limits{}), o.discovery, unrendered)
		if err != nil {
			return nil, err
		}
		maps.Copy(owners, files)
	}
	var written, others []string
	for _, name := range changed {
		if _, ok := owners[name]; ok {
			written = append(written, name)
		} else {
			others = append(others, name)
		}
	}
	c.AddWritten("commit "+base.name, readFiles(base, written), readFiles(head, written), owners)
	return others, nil
}

// unrenderedOf returns what could not be rendered at either end.
func unrenderedOf(results []dryrun.Result) discover.Unrendered {
	out := discover.Unrendered{Directories: map[string]string{}, Objects: map[string]map[string]any{}}
	for _, r := range results {
		response := r.Response()
		if r.Err != nil {
			out.Directories[r.Entry.Key] = ""
		}
		if response == nil {
			continue
		}
		rendered := map[string]bool{}
		for _, unit := range response.Units {
			failed := slices.Contains(response.Failed, unit.Name)
			rendered[unit.Kind+" "+unit.Name] = !failed && unit.Left == ""
			for _, dir := range unit.Directories {
				if failed {
					out.Directories[dir] = response.NameOfUnit(unit.Name)
				}
			}
		}
		for _, one := range response.Objects {
			name := one.Ref().String()
			isSet := one.Kind == "ApplicationSet" && slices.Contains(response.NotRendered(), name)
			if one.Group() != "argoproj.io" || rendered[name] || one.Kind != "Application" && !isSet {
				continue
			}
			if value, err := manifest.Decode(one.YAML); err == nil {
				out.Objects[name], _ = value.(map[string]any)
			}
		}
	}
	return out
}
