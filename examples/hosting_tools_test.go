// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// gosec has the schema of SARIF among its tests. It is one of the linters that .ci/golangci-lint.mod pins.
const gosec = "github.com/securego/gosec/v2"

// sarifSchema compiles the schema that OASIS publishes for SARIF 2.1.0.
func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-modfile=../.ci/golangci-lint.mod", "-json", gosec).Output()
	var module struct{ Dir, Error string }
	parsed := json.Unmarshal(out, &module)
	if err == nil { // one that cannot be downloaded says why in Error
		err = parsed
	}
	file := filepath.Join(module.Dir, "report", "sarif", "testdata", "sarif-schema-2.1.0.json")
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil && inCI {
		t.Fatalf("looking for the schema of SARIF in %s: %v %s", gosec, err, module.Error)
	} else if err != nil {
		t.Skipf("LEFT OUT: the schema of SARIF is in the module %s, which cannot be downloaded: %v %s", gosec, err, module.Error)
	}
	schema, err := jsonschema.NewCompiler().Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestSARIFIsValid has the findings of the action's lint step, and of nothing that is wrong, pass the schema of SARIF.
func TestSARIFIsValid(t *testing.T) {
	schema := sarifSchema(t)
	c := newCheckout(t)
	check := func(what, holds string) {
		t.Helper()
		text := readText(t, filepath.Join(c.dir, "prerig.sarif"))
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = schema.Validate(document)
		}
		if err != nil || !strings.Contains(text, holds) {
			t.Errorf("%s: %v\n%.2000s", what, err, text)
		}
	}
	inputs := map[string]string{"paths": "k8s\n", "check": "false", "fail-on": "never"}
	c.runAction(inputs)
	check("nothing wrong", `"version": "2.1.0"`)
	c.write("k8s/wrong.yaml", `apiVersion: v1
kind: Pod
metadata: {name: same-user, namespace: shop, annotations: {prerig.dev/lint-ignore.PR303: "it does not send anything"}}
spec:
  containers:
  - {name: app, image: "app:1", securityContext: {runAsUser: 1337}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: nobody}, ports: [{port: 80}]}
`)
	c.write("k8s/broken.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: [\n")
	c.runAction(inputs)
	check("findings, and a file that cannot be read", `"ruleId"`)
	if err := schema.Validate(map[string]any{"version": "2.1.0"}); err == nil {
		t.Error("the schema takes everything")
	}
}

// TestPreCommit has pre-commit itself read the hooks' manifest and run them in a repository, with the prerig that is installed: building
// it from the repository of the hooks is what `language: golang` does, and is left out.
func TestPreCommit(t *testing.T) {
	preCommit, err := exec.LookPath("pre-commit")
	if err != nil && inCI {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("needs pre-commit: %v", err)
	}
	c := newCheckout(t)
	home := t.TempDir()
	c.env = append(c.env, "PRE_COMMIT_HOME="+filepath.Join(home, "pre-commit"), "HOME="+home, "GIT_CONFIG_SYSTEM=/dev/null", "PRE_COMMIT_COLOR=never",
		"GIT_AUTHOR_NAME=You", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_COMMITTER_NAME=You", "GIT_COMMITTER_EMAIL=you@example.com")
	must := func(name string, args ...string) string {
		t.Helper()
		out, code := c.run(nil, name, args...)
		if code != 0 {
			t.Fatalf("%s %s: exit code %d\n%s", name, strings.Join(args, " "), code, out)
		}
		return strings.TrimSpace(out)
	}
	c.write("hooks/.pre-commit-hooks.yaml", readText(t, "../.pre-commit-hooks.yaml"))
	must(preCommit, "validate-manifest", "hooks/.pre-commit-hooks.yaml")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "hooks"}} {
		must("git", append([]string{"-C", "hooks"}, args...)...)
	}
	config := "repos:\n- repo: ./hooks\n  rev: " + must("git", "-C", "hooks", "rev-parse", "HEAD") + "\n  hooks:\n"
	for _, id := range []string{"prerig-check", "prerig-lint", "prerig-inject"} {
		config += "  - {id: " + id + ", language: system, args: [k8s]}\n"
	}
	c.write(".pre-commit-config.yaml", config)
	c.write(".gitignore", "hooks\noutput\nsummary\n")
	must("git", "init", "-q")
	must("git", "add", ".")
	for _, step := range []struct {
		hook string
		want int
		says string
	}{
		{"prerig-check", 1, "name: istio-proxy"},
		{"prerig-lint", 0, "Passed"},
		{"prerig-inject", 1, "files were modified by this hook"},
		{"prerig-inject", 0, "Passed"},
		{"prerig-check", 0, "Passed"},
	} {
		out, code := c.run(nil, preCommit, "run", step.hook, "--all-files")
		if code != step.want || !strings.Contains(out, step.says) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", step.hook, code, step.want, step.says, out)
		}
	}
	// A commit without YAML is nothing to the hooks.
	must("git", "commit", "-qnm", "all")
	c.write("notes.txt", "nothing")
	must("git", "add", "notes.txt")
	if out := must(preCommit, "run"); strings.Count(out, "(no files to check)Skipped") != 3 {
		t.Errorf("a commit without YAML: %s", out)
	}
}
