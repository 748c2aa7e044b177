// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
)

// brokenFiles are what is found broken at different moments: a file that is no YAML, one document of three that is none, a workload
// that only the run decodes, and one beside it that is whole.
var brokenFiles = map[string]string{
	"k8s/bad.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad\nspec: [\n",
	"k8s/part.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: part}\nspec:\n  a: 1\n  a: 2\n" +
		"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: rest, namespace: shop}\nspec:\n  template:\n    spec:\n      containers:\n      - {name: app, image: app:1}\n",
	"k8s/twice.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: twice, namespace: shop}\nspec:\n  template:\n    spec:\n      containers:\n      - name: app\n        image: app:1\n        image: app:2\n",
}

// arrangeBroken puts web.yaml and the broken files into k8s/.
func arrangeBroken(t *testing.T) (original string) {
	t.Helper()
	original = arrange(t)
	must(t, os.Mkdir("k8s", 0o755))
	must(t, os.Rename("web.yaml", "k8s/web.yaml"))
	for name, text := range brokenFiles {
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return original
}

// wantsBroken checks that a command failed and named each broken file with its error.
func wantsBroken(t *testing.T, code int, stderr string) {
	t.Helper()
	if code != ExitError {
		t.Errorf("exit code %d", code)
	}
	wants(t, stderr, "error: decoding k8s/bad.yaml:4: ", `error: decoding k8s/part.yaml:10: found the key "a" twice`,
		`Deployment shop/twice: decoding k8s/twice.yaml:10: found the key "image" twice`)
}

// TestInjectGoesOnPastUnreadableFiles compares what is written with what the whole files alone give.
func TestInjectGoesOnPastUnreadableFiles(t *testing.T) {
	arrangeBroken(t)
	want, _ := ok(t, "", "inject", "-p", "tiny.yaml", "k8s/web.yaml")
	code, got, stderr := command(t, "", "inject", "-p", "tiny.yaml", "k8s")
	wantsBroken(t, code, stderr)
	wants(t, stderr, "omitted from the output: k8s/bad.yaml, k8s/part.yaml, k8s/twice.yaml\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	code, _, stderr = command(t, "", "inject", "-p", "tiny.yaml", "--to", "out/", "k8s")
	wantsBroken(t, code, stderr)
	if got := tree(t, "out"); !maps.Equal(got, map[string]string{"web.yaml": want}) {
		t.Errorf("-o out/ gives %v", got)
	}

	code, got, stderr = command(t, "", "inject", "-p", "tiny.yaml", "--diff", "k8s")
	wantsBroken(t, code, stderr)
	wants(t, got, "+++ b/k8s/web.yaml", "+++ b/k8s/part.yaml")

	code, _, stderr = command(t, "", "inject", "-p", "tiny.yaml", "--check", "k8s")
	wantsBroken(t, code, stderr)
	wants(t, stderr, "Deployment shop/web: does not match the policy")
}

// TestUnreadableFilesStopWhatIsAllOrNothing is about the files that are changed, and one file for all.
func TestUnreadableFilesStopWhatIsAllOrNothing(t *testing.T) {
	arrangeBroken(t)
	must(t, os.WriteFile("all.yaml", []byte("last: good\n"), 0o644))
	before := tree(t, ".")
	for _, args := range [][]string{{"-i", "k8s"}, {"-i", "--remove", "k8s"}, {"--to", "all.yaml", "k8s"}} {
		code, out, stderr := command(t, "", append([]string{"inject", "-p", "tiny.yaml"}, args...)...)
		if code != ExitError || out != "" {
			t.Errorf("%v: exit code %d, and on standard output:\n%s", args, code, out)
		}
		wants(t, stderr, "k8s/bad.yaml:4", "nothing was written")
		if got := tree(t, "."); !maps.Equal(got, before) {
			t.Errorf("%v: files changed", args)
		}
	}
}

// TestAWorkloadThatFailsStopsTheOutput is about an error that is no unreadable file: what shows goes on, and what writes does not.
func TestAWorkloadThatFailsStopsTheOutput(t *testing.T) {
	arrangeBroken(t)
	failing := strings.Replace(readFile(t, "k8s/web.yaml"), "name: web", "name: 7", 1)
	must(t, os.WriteFile("k8s/zeven.yaml", []byte(failing), 0o644))
	code, out, stderr := command(t, "", "inject", "-p", "tiny.yaml", "k8s")
	if code != ExitError || out != "" {
		t.Errorf("exit code %d, and on standard output:\n%s", code, out)
	}
	wants(t, stderr, "it has to be a string and is the number 7", "nothing was written")
	code, out, _ = command(t, "", "inject", "-p", "tiny.yaml", "--diff", "k8s")
	if code != ExitError {
		t.Errorf("--diff: exit code %d", code)
	}
	wants(t, out, "+++ b/k8s/web.yaml")
}

// TestObjectsOfSidecarsWithUnreadableFiles checks that what a sidecar adds is in the output too, where the last file is left out.
func TestObjectsOfSidecarsWithUnreadableFiles(t *testing.T) {
	arrangeBroken(t)
	must(t, os.WriteFile("objects.yaml", []byte(`apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: own}
spec:
  sidecars:
  - name: gate
    select: {rules: [{labels: {matchLabels: {app: web}}, action: Inject}]}
    template: "spec: {containers: [{name: gate, image: 'example.com/gate:1'}]}"
    objects: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: gate}
`), 0o644))
	want, _ := ok(t, "", "inject", "-p", "objects.yaml", "k8s/web.yaml")
	wants(t, want, "kind: ConfigMap")
	code, got, stderr := command(t, "", "inject", "-p", "objects.yaml", "k8s")
	wantsBroken(t, code, stderr)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExplainGoesOnPastUnreadableFiles(t *testing.T) {
	arrangeBroken(t)
	code, out, stderr := command(t, "", "explain", "-p", "tiny.yaml", "k8s")
	wantsBroken(t, code, stderr)
	wants(t, out, "Deployment shop/web ", "Deployment shop/rest ")

	code, out, stderr = command(t, "", "explain", "-p", "tiny.yaml", "-f", "k8s", "deployment/web")
	wants(t, out, "Deployment shop/web (k8s/web.yaml:2)")
	wants(t, stderr, "error: decoding k8s/bad.yaml:4: ")
	if code != ExitError {
		t.Errorf("deployment/web: exit code %d", code)
	}
	code, _, stderr = command(t, "", "explain", "-p", "tiny.yaml", "-f", "k8s", "deployment/bad")
	wants(t, stderr, "error: decoding k8s/bad.yaml:4: ", "finding deployment/bad")
	if code != ExitError {
		t.Errorf("deployment/bad: exit code %d", code)
	}

	code, out, stderr = command(t, "", "explain", "-p", "tiny.yaml", "-o", "json", "k8s")
	wantsBroken(t, code, stderr)
	var e struct {
		Workloads []struct{ Object struct{ Name string } }
		Problems  []struct {
			Message, File string
			Line          int
		}
	}
	must(t, json.Unmarshal([]byte(out), &e))
	if len(e.Workloads) != 3 || len(e.Problems) != 2 || e.Problems[0].File != "k8s/bad.yaml" || e.Problems[0].Line != 4 || e.Problems[1].Line != 10 {
		t.Errorf("got %+v", e)
	}
}
