// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// TestReleasesAmongManifestsAreNamed: a tree of HelmReleases and Applications has no workloads, and one line says what renders them.
func TestReleasesAmongManifestsAreNamed(t *testing.T) {
	web := arrange(t)
	const values = "{template: {metadata: {}, spec: {containers: [{name: a, image: b}]}}}"
	writeFiles(t, map[string]string{
		"k8s/a.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec:\n  values: " + values + "\n",
		"k8s/b.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: b}\nspec:\n  source: {helm: {valuesObject: " + values + "}}\n",
	})
	const line = "1 HelmRelease, 1 Application below k8s/"
	for _, args := range []string{"inject -p tiny.yaml --diff k8s", "explain -p tiny.yaml k8s", "lint -p tiny.yaml k8s", "lint --as-is k8s", "gate -p tiny.yaml k8s"} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if !strings.Contains(stderr, "info: "+line+": the workloads that they install are not in the files; a pipeline with spec.build.releases renders them") {
			t.Errorf("%s does not name them:\n%s", args, stderr)
		}
		if strings.Contains(stderr, "podTemplate: ") {
			t.Errorf("%s advises to inject values:\n%s", args, stderr)
		}
		if strings.HasPrefix(args, "lint") && (code != ExitError || !strings.Contains(stderr, "error: no workload was found, only "+line)) {
			t.Errorf("%s: exit %d\n%s", args, code, stderr)
		}
	}
	put(t, web, "k8s/web.yaml")
	if code, _, stderr := command(t, "", "lint", "-p", "tiny.yaml", "k8s"); code == ExitError {
		t.Errorf("with a workload: exit %d\n%s", code, stderr)
	}
}
