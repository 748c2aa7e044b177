// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// unitRenderer renders two units, each from a file of its own; a file that is broken fails its unit.
type unitRenderer struct{}

func (unitRenderer) Render(_ context.Context, files tree.Reader, _ render.Request) (*render.Response, error) {
	response := &render.Response{Type: v1alpha1.BuildFlux}
	for _, unit := range []string{"flux-system/a", "flux-system/b"} {
		content, err := files.Read("shop/" + strings.TrimPrefix(unit, "flux-system/") + ".yaml")
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(content), "broken") {
			response.Failed = append(response.Failed, unit)
			response.Results = append(response.Results, result.Result{Severity: result.Error, Message: "it is broken", Tags: map[string]string{render.TagUnit: unit}})
			continue
		}
		response.Objects = append(response.Objects, render.Object{APIVersion: "v1", Kind: "ConfigMap", Name: "m", Unit: unit, YAML: content})
	}
	return response, nil
}

// TestFailedUnitKeepsItsPublishedFiles publishes a unit whose neighbour fails, which keeps what is published of it, and
// is not ready until that is mended.
func TestFailedUnitKeepsItsPublishedFiles(t *testing.T) {
	w := newWorks(t, "shop")
	w.runner.Builder.Renderer = unitRenderer{}
	unit := func(value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {v: " + value + "}\n"
	}
	step := func(subject, ready string, files map[string]string) {
		t.Helper()
		w.repository.Commit(subject, files)
		if err := w.do("shop", subject, 0); err != nil {
			t.Fatal(err)
		}
		if c := w.state("shop").Condition(); c == nil || c.Status != "True" && ready == "" || !strings.Contains(c.Message, ready) {
			t.Errorf("%s: %+v", subject, c)
		}
	}
	published := func(want ...string) {
		t.Helper()
		all := ""
		for path := range strings.FieldsSeq(w.repository.Git("ls-tree", "-r", "--name-only", "rendered")) {
			if strings.Contains(path, "flux-system/") {
				all += w.repository.Git("show", "rendered:"+path)
			}
		}
		if strings.Count(all, "kind: ConfigMap") != len(want) {
			t.Errorf("got\n%s", all)
		}
		for _, one := range want {
			if !strings.Contains(all, one) {
				t.Errorf("no %s in\n%s", one, all)
			}
		}
	}
	step("first", "", map[string]string{"shop/a.yaml": unit("a1"), "shop/b.yaml": unit("b1")})
	published("a1", "b1")
	step("one fails", "flux-system/b: error: it is broken", map[string]string{"shop/a.yaml": unit("a2"), "shop/b.yaml": "broken"})
	published("a2", "b1")
	step("mended", "", map[string]string{"shop/b.yaml": unit("b3")})
	published("a2", "b3")
}
