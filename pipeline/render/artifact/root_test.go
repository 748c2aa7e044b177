// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"testing"

	"github.com/prerig/prerig/pipeline/render/artifact"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestRootOfAnArtifact: only commands and paths tell which directory an artifact has.
func TestRootOfAnArtifact(t *testing.T) {
	directories := []string{".", "deploy", "deploy/apps", "deploy/apps/edge", "other", "other/edge", "other/db"}
	const url = "oci://registry.example.com:5000/team/apps-sync"
	push := func(path string) string {
		return "    run: |\n      flux push artifact oci://$REGISTRY/apps-sync:local \\\n        --path=" + path + " \\\n        --source=x\n"
	}
	for name, c := range map[string]struct {
		workflow   string
		paths      []string
		root       string
		isNotKnown bool
	}{
		"the only one with the paths":      {paths: []string{"./", "./edge", "./db"}, root: "other"},
		"two have the path":                {paths: []string{"edge"}, isNotKnown: true},
		"nothing but the root":             {paths: []string{"./"}, isNotKnown: true},
		"a command":                        {workflow: push("./deploy/apps"), paths: []string{"./"}, root: "deploy/apps"},
		"a command with a variable":        {workflow: push("\"${DIR}\""), paths: []string{"./"}, isNotKnown: true},
		"a command for what is not a path": {workflow: push("gone"), paths: []string{"./"}, isNotKnown: true},
	} {
		b := tree.NewBuilder(tree.Limits{})
		if err := b.Add(".github/workflows/push.yaml", tree.File, []byte(c.workflow)); err != nil {
			t.Fatal(err)
		}
		root, known := artifact.Root(tree.NewView(b.Build(), tree.Limits{}), directories, c.paths, url)
		if known == c.isNotKnown || root != c.root && known {
			t.Errorf("%s: got %q, %t", name, root, known)
		}
	}
}
