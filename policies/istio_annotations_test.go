// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prerig/prerig/policies"
)

// namedReads are the ways in which the templates of the built-in policy read annotations: a name that is in the text, a name that begins with
// sidecar.istio.io/, and whether an annotation exists. istio.Template.MayPrint relies on them.
var namedReads = []*regexp.Regexp{
	regexp.MustCompile(`\$notes := \$meta\.Annotations`),
	regexp.MustCompile(`isset \$notes ("|\.\)\))`),
	regexp.MustCompile(`index \$notes "`),
	regexp.MustCompile(`index \$notes \(print "sidecar\.istio\.io/" `),
	regexp.MustCompile(`range list( "[^"]+")+ }}\s+\{\{- \$name := \. }}\s+\{\{- with index \$notes \$name`),
	regexp.MustCompile(`otelResourceAttributes \.MeshConfig \$notes `),
}

// TestTemplatesReadAnnotationsByName finds every use of a pod's annotations in the built-in policy.
func TestTemplatesReadAnnotationsByName(t *testing.T) {
	text, ok := policies.Get("istio")
	if !ok {
		t.Fatal("there is no policy istio")
	}
	templates, _, _ := strings.Cut(string(text), "\n      values:")
	uses := strings.Count(templates, "$notes") + strings.Count(templates, ".Annotations")
	for _, way := range namedReads {
		for _, found := range way.FindAllString(templates, -1) {
			uses -= strings.Count(found, "$notes") + strings.Count(found, ".Annotations")
		}
	}
	if uses != 0 {
		t.Errorf("%d uses of annotations are none of those that MayPrint knows", uses)
	}
	for _, line := range strings.Split(templates, "\n") {
		if strings.Contains(line, "annotation $meta ") && !strings.Contains(line, `annotation $meta "`) {
			t.Errorf("the name of the annotation is not in the text: %s", line)
		}
	}
}
