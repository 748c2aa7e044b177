// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// keepChanged divides the releases by whether a comparison shows a change of them, of the objects or of the sources that they install.
// Those without a change and without locked charts are forgotten, as nothing is left out of these.
func (k keptReleases) keepChanged(c *dryrun.Comparison) {
	changed := map[string]map[string]bool{}
	add := func(build, name string) {
		if changed[build] == nil {
			changed[build] = map[string]bool{}
		}
		changed[build][name] = true
	}
	for _, change := range c.Changes {
		for _, o := range change.Objects {
			add(o.Pipeline, o.Name)
		}
	}
	for _, remark := range c.Remarks {
		for _, name := range remark.Objects {
			add(remark.Pipeline, name)
		}
	}
	for build, one := range k {
		if one.all {
			continue
		}
		maps.DeleteFunc(one.why, func(kept v1alpha1.KeptObject, why string) bool {
			isChanged := changed[build][nameOfKept(kept)]
			if !isChanged && !one.unlocked[kept] {
				one.unchanged = append(one.unchanged, nameOfKept(kept)+" ("+firstReason(why)+")")
			}
			return !isChanged
		})
	}
}
