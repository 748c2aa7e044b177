// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/internal/testprograms"
)

// TestGateFindsAlteredInjections injects a base and builds overlays over it with kustomize itself: the gate finds in the output that patches
// by position have hit the proxy, and nothing in that of a patch by name.
func TestGateFindsAlteredInjections(t *testing.T) {
	dir := t.TempDir()
	built, err := testprograms.Build(testprograms.Kustomize)
	must(t, err)
	kustomize := filepath.Join(built, testprograms.Kustomize.Name)
	for path, content := range overlaidBase {
		path = filepath.Join(dir, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	if code, _, text := command(t, "", "inject", "-q", "-i", filepath.Join(dir, "base")); code != 0 {
		t.Fatalf("injecting the base: exit code %d\n%s", code, text)
	}
	must(t, os.Mkdir(filepath.Join(dir, "over"), 0o700))
	for name, c := range map[string]struct {
		overlay string
		want    []string
	}{
		"an image":     {jsonPatch(`- {op: replace, path: /spec/template/spec/initContainers/0/image, value: "migrate:2"}`), []string{"initContainers[0].image: the injected container istio-init has the image migrate:2"}},
		"a user":       {jsonPatch("- {op: remove, path: /spec/template/spec/initContainers/1/securityContext/runAsUser}"), []string{"initContainers[1].securityContext: the injected container istio-proxy has a runAsGroup and no runAsUser"}},
		"a volume":     {jsonPatch("- {op: replace, path: /spec/template/spec/volumes/0, value: {name: data, emptyDir: {}}}"), []string{"the injection recorded the volume workload-socket"}},
		"all volumes":  {jsonPatch("- {op: add, path: /spec/template/spec/volumes, value: [{name: data, emptyDir: {}}]}"), []string{"the volume istio-data", "the volume istio-podinfo"}},
		"a container":  {jsonPatch("- {op: remove, path: /spec/template/spec/initContainers/0}"), []string{"the injection recorded the init container istio-init"}},
		"by name":      {overBase("patches:\n- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {initContainers: [{name: migrate, image: \"migrate:2\"}]}}}}'\n"), nil},
		"without more": {overBase(""), nil},
	} {
		must(t, os.WriteFile(filepath.Join(dir, "over", "kustomization.yaml"), []byte(c.overlay), 0o600))
		output, err := exec.Command(kustomize, "build", filepath.Join(dir, "over")).Output()
		must(t, err)
		code, out, text := command(t, string(output), "gate", "--as-is", "-")
		if failed := code == 1; failed != (c.want != nil) || strings.Contains(out, "injection-altered") != failed {
			t.Errorf("%s: exit code %d:\n%s%s", name, code, out, text)
		}
		for _, line := range c.want {
			if !strings.Contains(out, line) {
				t.Errorf("%s: lacks %q:\n%s", name, line, out)
			}
		}
	}
}
