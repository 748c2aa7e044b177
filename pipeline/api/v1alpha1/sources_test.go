// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

const severalSources = `apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: shop}
spec:
  source: {git: {url: https://git.example.com/apps.git, ref: {branch: main}}}
  sources:
  - mountPath: platform
    git: {url: https://git.example.com/platform.git, ref: {branch: prod}}
  - mountPath: deploy/values
    oci: {url: oci://registry.example.com/values, ref: {tag: prod}}
  publish: [{git: {branch: rendered}}]
`

func TestSeveralSources(t *testing.T) {
	p, err := v1alpha1.Parse([]byte(severalSources))
	if err != nil {
		t.Fatal(err)
	}
	all := p.AllSources()
	if len(all) != 3 || all[0].Field != "spec.source" || all[0].MountPath != "" || all[1].Field != "spec.sources[0]" || all[1].Git.URL != "https://git.example.com/platform.git" ||
		all[2].MountPath != "deploy/values" || all[2].URL() != "oci://registry.example.com/values" {
		t.Errorf("got %+v", all)
	}
	if got := p.Spec.Publish[0].Git.URL; got != "https://git.example.com/apps.git" {
		t.Errorf("the result goes to %s", got)
	}
}

func TestWrongSources(t *testing.T) {
	for name, tc := range map[string]struct{ old, new, want string }{
		"no mount path":          {"mountPath: platform", "mountPath: \"\"", "line 7: spec.sources[0].mountPath: must be given"},
		"the root":               {"mountPath: platform", "mountPath: .", "spec.sources[0].mountPath: must be a directory below the root"},
		"out of the tree":        {"mountPath: platform", "mountPath: ../x", "must be a directory below the root"},
		"absolute":               {"mountPath: platform", "mountPath: /x", "must be a directory below the root"},
		"hidden":                 {"mountPath: platform", "mountPath: x/.git", "must be a directory below the root"},
		"reserved":               {"mountPath: platform", "mountPath: .prerig-base-0", "must be a directory below the root"},
		"like a revision":        {"mountPath: platform", "mountPath: a=b", "must be a directory below the root"},
		"one in the other":       {"mountPath: platform", "mountPath: deploy", "line 9: spec.sources[1].mountPath: is, holds, or is in the mountPath of spec.sources[0]"},
		"twice":                  {"mountPath: deploy/values", "mountPath: platform", "spec.sources[1].mountPath: is, holds, or is in"},
		"nothing":                {"oci: {url: oci://registry.example.com/values, ref: {tag: prod}}", "{}", "line 10"},
		"no source":              {"    oci: {url: oci://registry.example.com/values, ref: {tag: prod}}\n", "", "line 9: spec.sources[1]: exactly one of dir, git, oci must be given, found none"},
		"two sources":            {"ref: {branch: prod}}", "ref: {branch: prod}}\n    dir: {path: x}", "spec.sources[0]: exactly one of dir, git, oci must be given, found dir and git"},
		"a password":             {"https://git.example.com/platform.git", "https://me:hunter2@git.example.com/platform.git", "line 8: spec.sources[0].git.url"},
		"a wrong reference":      {"branch: prod", "branch: a..b", "spec.sources[0].git.ref.branch"},
		"an unknown key":         {"mountPath: platform", "mountpath: platform", "line 7"},
		"the branch of a source": {"publish: [{git: {branch: rendered}}]", "publish: [{git: {url: https://git.example.com/platform, branch: prod}}]", "spec.publish[0].git.branch: is the branch of spec.sources[0]"},
		"a proposal":             {"branch: rendered}", "branch: rendered, propose: {}}", "spec.publish[0].git.propose: cannot be used with spec.sources"},
		"too many":               {"  publish:", strings.Repeat("  - {mountPath: x, dir: {path: x}}\n", 15) + "  publish:", "spec.sources: must not have more than 16 elements"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(severalSources, tc.old, tc.new, 1)
			if text == severalSources {
				t.Fatal("nothing is different")
			}
			if _, err := v1alpha1.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
