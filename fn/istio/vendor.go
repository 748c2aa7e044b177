// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// OpenShiftServiceMesh is the vendor whose templates name a version of Maistra.
const OpenShiftServiceMesh = "OpenShift Service Mesh"

// maistraVersion matches the label that the charts of OpenShift Service Mesh add to every pod.
var maistraVersion = lazyregexp.New(`maistra-version"?:?\s*"?2\.(\d{1,2})\b`)

// maistraAnnotation begins the annotations that only the templates of OpenShift Service Mesh read.
const maistraAnnotation = "sidecar.maistra.io/"

// maistraMinors are the minors of Istio that the minors of OpenShift Service Mesh 2 are made from (source: go.mod of the
// branches maistra-2.0 to maistra-2.6 of maistra/istio).
var maistraMinors = map[string]int{"0": 6, "1": 9, "2": 12, "3": 14, "4": 16, "5": 18, "6": 20}

// findServiceMesh notes that the templates are those of OpenShift Service Mesh, and returns the minor of Istio that its
// injector is made from. known is false for a version that is not in the table.
func (d *Detection) findServiceMesh(c *Config) (minor int, known bool) {
	for _, text := range templateTexts(c) {
		if m := maistraVersion.FindStringSubmatch(text); m != nil {
			d.Vendor, d.vendorLabel = OpenShiftServiceMesh+" 2."+m[1], "maistra-version 2."+m[1]
			minor, known = maistraMinors[m[1]]
			return minor, known
		}
		if strings.Contains(text, maistraAnnotation) {
			d.Vendor = OpenShiftServiceMesh
		}
	}
	return 0, false
}

// mixesVersions reports whether templates use functions and fields that no version of Istio has together: vendors bring those
// of newer versions to older ones.
func mixesVersions(c *Config, g Generation) bool {
	var spans []release.Span
	for _, text := range templateTexts(c) {
		spans = append(spans, usedSpans(text, g)...)
	}
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.To.Minor+1 < b.From.Minor-1 || b.To.Minor+1 < a.From.Minor-1 {
				return true
			}
		}
	}
	return false
}

// vendorWarning describes the assumptions about a vendor's templates, and the fields and functions of other
// versions that they use.
func (d *Detection) vendorWarning(templates map[string]*Template) string {
	var foreign []string
	for _, t := range templates {
		foreign = append(foreign, t.foreign...)
	}
	slices.Sort(foreign)
	text := fmt.Sprintf("the templates are those of %s; its injector is taken to behave like that of Istio %s", d.Vendor, d.Version)
	if foreign = slices.Compact(foreign); len(foreign) > 0 {
		text += ", and what that does not have like the versions that have it: " + strings.Join(foreign, ", ")
	}
	return text
}

// IsServiceMesh reports whether the injector is that of OpenShift Service Mesh.
func (d Detection) IsServiceMesh() bool { return strings.HasPrefix(d.Vendor, OpenShiftServiceMesh) }
