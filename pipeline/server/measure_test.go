// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNamesInMetricsAreNames: what a file that is not valid says of itself is no label, however it is called.
func TestNamesInMetricsAreNames(t *testing.T) {
	files := map[string]string{"nonsense.yaml": "\"\n", "good.yaml": fmt.Sprintf(object, "web", "web", "")}
	for i, name := range []string{"typo", "bad name", `"\xff\n"`, `"a#b"`, `"a/b"`, strings.Repeat("a", 4000)} {
		files[fmt.Sprintf("%d.yaml", i)] = "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {namespace: team, name: " + name + "}\nspec: {sauce: {}}\n"
	}
	var got []string
	states := map[string]int{}
	for _, p := range with(t, files).Measure() {
		states[p.State]++
		if p.Name != "" {
			got = append(got, p.Namespace+"/"+p.Name)
		}
	}
	if diff := cmp.Diff([]string{"team/typo", "team/web"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{StateNew: 1, StateInvalid: 7}, states); diff != "" {
		t.Error(diff)
	}
}
