// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestLoadRestrictor: without the restrictor a kustomization loads all files of the source, in each field, and none outside.
func TestLoadRestrictor(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: c}\n"
	for name, tc := range map[string]struct {
		kustomization string
		files         map[string]string
		want          string // an object, or an error with the restrictor off
	}{
		"a resource":       {"resources: [../../shared/cm.yaml]\n", nil, "v1 ConfigMap a"},
		"a generator":      {"configMapGenerator:\n- {name: a, files: [../../shared/data], options: {disableNameSuffixHash: true}}\n", nil, "v1 ConfigMap a"},
		"a patch":          {"resources: [cm.yaml]\npatches: [{path: ../../shared/patch.yaml}]\n", nil, "v1 ConfigMap a"},
		"a link inside":    {"configMapGenerator:\n- {name: a, files: [link], options: {disableNameSuffixHash: true}}\n", map[string]string{"clusters/home/link": "->../../shared/data"}, "v1 ConfigMap a"},
		"out of the tree":  {"resources: [../../../../etc/passwd]\n", nil, "leads out of the source"},
		"a file outside":   {"configMapGenerator:\n- {name: a, files: [../../../../etc/passwd]}\n", nil, "leads out of the source"},
		"a link outside":   {"configMapGenerator:\n- {name: a, files: [link]}\n", map[string]string{"clusters/home/link": "->../../../etc/passwd"}, "leads out"},
		"an absolute path": {"configMapGenerator:\n- {name: a, files: [/etc/passwd]}\n", nil, "absolute path"},
		"a plugin's file": {"generators: [g.yaml]\n", map[string]string{
			"clusters/home/g.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [../../../../etc/passwd]\n",
		}, "etc/passwd"},
	} {
		files := map[string]string{
			"clusters/home/kustomization.yaml": tc.kustomization, "clusters/home/cm.yaml": config, "shared/cm.yaml": config, "shared/data": "x",
			"shared/patch.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {d: e}\n",
		}
		for file, text := range tc.files {
			files[file] = text
		}
		r := request("clusters/home")
		if _, _, err := renderFiles(t, files, r); err == nil {
			t.Errorf("%s: it is loaded by default", name)
		}
		r.LoadRestrictor = v1alpha1.LoadRestrictionsNone
		response, _, err := renderFiles(t, files, r)
		if strings.HasPrefix(tc.want, "v1 ") {
			if err != nil || ids(response) != tc.want {
				t.Errorf("%s: got %v", name, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
