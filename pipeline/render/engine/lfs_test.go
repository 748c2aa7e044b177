// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
)

// A resource that is a pointer of Git LFS is named as one; a pointer that is only a file of a ConfigMap is not blamed for something else.
func TestPointerOfLFSIsNamed(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	for name, c := range map[string]struct {
		files  map[string]string
		blamed string
	}{
		"a resource":     {map[string]string{"kustomization.yaml": "resources: [web.yaml]", "web.yaml": pointer}, "web.yaml"},
		"a patch":        {map[string]string{"kustomization.yaml": "patches: [{path: p.yaml}]", "p.yaml": pointer}, "p.yaml"},
		"in a base":      {map[string]string{"kustomization.yaml": "resources: [base]", "base/kustomization.yaml": "resources: [deep.yaml]", "base/deep.yaml": pointer}, "base/deep.yaml"},
		"a plain file":   {map[string]string{"web.yaml": pointer, "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}, "web.yaml"},
		"something else": {map[string]string{"kustomization.yaml": "configMapGenerator: [{name: c, files: [data.bin]}]\nresources: [none.yaml]", "data.bin": pointer}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := renderFiles(t, c.files, request("."))
			if err == nil {
				t.Fatal("it was built")
			}
			want := c.blamed + " is a pointer of Git LFS"
			if got := strings.Contains(err.Error(), want); got != (c.blamed != "") {
				t.Errorf("got %v", err)
			}
		})
	}
}
