// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/cli/doctor"
)

// TestDoctorRendersPipelines: a pipeline that is valid and cannot be rendered is an error with unit, file and line; one of another
// repository is named as not rendered with --offline.
func TestDoctorRendersPipelines(t *testing.T) {
	emptyProject(t, "https://git.example.com/team/org.git")
	put(t, fluxPart("web", "apps/web")+"---\n"+fluxPart("db", "apps/db"), "clusters/prod/apps.yaml")
	put(t, initWeb, "apps/web/web.yaml")
	put(t, settings("db", "one"), "apps/db/db.yaml")
	runCode(t, 0, "init", "--yes", "--source", ".", "--name", "prod")
	put(t, "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: other}\nspec:\n"+
		"  source: {git: {url: \"https://git.example.com/team/other.git\"}}\n  build: {path: .}\n  publish: [{git: {branch: rendered}}]\n", "pipelines/other.yaml")
	found := examine(t, 0, "--offline", "--state", t.TempDir(), "--listen", "127.0.0.1:0")
	has := func(text string) bool {
		return slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Area == doctor.Pipelines && strings.Contains(f.Message, text) })
	}
	if !has("prod renders 2 objects from the files of this repository") || !has("not rendered (--offline), as sources, charts or bases are on servers: other") {
		t.Errorf("%+v", found)
	}
	put(t, brokenManifest, "apps/db/db.yaml")
	found = examine(t, 1, "--offline", "--state", t.TempDir(), "--listen", "127.0.0.1:0")
	i := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Unit == "flux-system/db" })
	if i < 0 || found[i].File != "clusters/prod/apps.yaml" || found[i].Line == 0 || !strings.Contains(found[i].Message, "apps/db/db.yaml") {
		t.Errorf("%+v", found)
	}
}
