// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// keepChanged forgets the releases without locked charts that a comparison shows no change of, neither of the objects nor of the sources that they install: of
// these, nothing is left out.
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
		maps.DeleteFunc(one.why, func(kept v1alpha1.KeptObject, _ string) bool {
			return one.unlocked[kept] && !changed[build][kept.Kind+" "+strings.TrimPrefix(kept.Namespace+"/"+kept.Name, "/")]
		})
	}
}
