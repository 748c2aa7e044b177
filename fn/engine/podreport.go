// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// podReport collects the results about one pod template. Its fields are paths below the template.
type podReport struct {
	unit    *documentUnit
	field   string // of the template
	results result.Results
}

func (r *podReport) add(severity result.Severity, field, message string) {
	r.addAt(severity, joinField(r.field, field), message)
}

// addAt adds a result about a field of the object.
func (r *podReport) addAt(severity result.Severity, field, message string) {
	r.results = append(r.results, r.unit.newResult(severity, field, message))
}

// addAll adds results of others.
func (r *podReport) addAll(list result.Results) {
	for _, one := range list {
		ref := r.unit.namedReference()
		one.ResourceRef = &ref
		if one.File == nil {
			one.File = r.unit.fileLocation()
		}
		if one.Field != nil {
			at := *one.Field
			at.Path = joinField(r.field, at.Path)
			one.Field = &at
		}
		r.results = append(r.results, one)
	}
}

// addDropped names the entries that a webhook would write besides the one that counts.
func (r *podReport) addDropped(dropped []podmap.Dropped) {
	for _, d := range dropped {
		r.add(result.Info, d.Field, fmt.Sprintf("the injection sets %s %d times, and only the last is written: "+
			"the container gets no other, and server-side apply rejects a list with two entries of one key",
			d.Key, d.Count))
	}
}
