// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/internal/testprograms"
)

// checkout is a directory with the manifests of an example, where the scripts of a host run as they do there.
type checkout struct {
	t   *testing.T
	dir string
	env []string
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	programs, err := testprograms.Build(testprograms.Prerig)
	if err != nil {
		t.Fatal(err)
	}
	c := &checkout{t: t, dir: t.TempDir()}
	for _, name := range []string{"output", "summary"} {
		c.write(name, "")
	}
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	c.env = append(os.Environ(), "GITHUB_OUTPUT="+filepath.Join(c.dir, "output"), "GITHUB_STEP_SUMMARY="+filepath.Join(c.dir, "summary"))
	c.write("k8s/shop.yaml", readText(t, "prerig-inject/shop.yaml"))
	c.write("k8s/values.yaml", "a: b\n") // no manifest
	c.git("init", "--quiet", "--initial-branch=main")
	c.git("add", "k8s")
	c.git("commit", "--quiet", "-m", "first")
	return c
}

// git runs git in the checkout, and returns what it prints.
func (c *checkout) git(args ...string) string {
	c.t.Helper()
	out, code := c.run(nil, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	if code != 0 {
		c.t.Fatalf("git %v: %s", args, out)
	}
	return strings.TrimSpace(out)
}

func readText(t *testing.T, path string) string { return string(read(t, path)) }

func (c *checkout) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		c.t.Fatal(err)
	}
}

// run runs a script as the hosts do, where the first command that fails ends it, and returns what it printed.
func (c *checkout) run(env map[string]string, name string, args ...string) (out string, code int) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return all.String(), cmd.ProcessState.ExitCode()
}

// action is action.yml as far as the test runs it.
type action struct {
	Inputs map[string]struct {
		Default string `json:"default"`
	} `json:"inputs"`
	Runs struct {
		Steps []struct {
			ID   string            `json:"id"`
			Name string            `json:"name"`
			Run  string            `json:"run"`
			Env  map[string]string `json:"env"`
		} `json:"steps"`
	} `json:"runs"`
}

// runAction runs the steps of the action that have a script, except those that install and comment. The job's result is the last code.
func (c *checkout) runAction(inputs map[string]string) (out string, code int) {
	c.t.Helper()
	var a action
	if err := yaml.Unmarshal(read(c.t, "../action.yml"), &a); err != nil {
		c.t.Fatal(err)
	}
	values := map[string]string{"${{ github.event.pull_request.base.sha }}": c.git("rev-parse", "main")}
	for name, input := range a.Inputs {
		values["${{ inputs."+name+" }}"] = input.Default
	}
	for name, value := range inputs {
		if _, ok := a.Inputs[name]; !ok {
			c.t.Fatalf("the action has no input %s", name)
		}
		values["${{ inputs."+name+" }}"] = value
	}
	isOff := map[string]bool{} // steps have the name of the input that switches them on
	for name := range a.Inputs {
		isOff[name] = values["${{ inputs."+name+" }}"] == "false"
	}
	for _, step := range a.Runs.Steps {
		if step.Run == "" || step.Name == "Install" || step.Name == "Comment" || isOff[step.ID] {
			continue
		}
		env := map[string]string{}
		for name, value := range step.Env {
			text, ok := values[value]
			if !ok && !strings.HasPrefix(value, "${{ steps.") {
				c.t.Fatalf("step %s: there is no value for %s", step.Name, value)
			}
			env[name] = text
		}
		c.write("output", "")
		text, stepCode := c.run(env, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		out, code = out+text, stepCode
		for line := range strings.Lines(readText(c.t, filepath.Join(c.dir, "output"))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values[fmt.Sprintf("${{ steps.%s.outputs.%s }}", step.ID, name)] = value
		}
	}
	return out, code
}

// TestGitHubAction runs the scripts of action.yml in the shell that GitHub runs them with.
func TestGitHubAction(t *testing.T) {
	c := newCheckout(t)
	c.git("checkout", "--quiet", "-b", "feature")
	both := map[string]string{"paths": "k8s\n"}
	out, code := c.runAction(both)
	if code != 1 || !strings.Contains(out, "name: istio-proxy") {
		t.Errorf("manifests that are not injected: exit code %d\n%s", code, out)
	}
	if sarif := readText(t, filepath.Join(c.dir, "prerig.sarif")); !strings.Contains(sarif, `"version": "2.1.0"`) {
		t.Errorf("the findings are no SARIF: %.300s", sarif)
	}
	if out, code := c.run(nil, "prerig", "inject", "-i", "-q", "k8s"); code != 0 {
		t.Fatal(out)
	}
	if out, code := c.runAction(both); code != 0 {
		t.Errorf("manifests that are injected: exit code %d\n%s", code, out)
	}
	if review := readText(t, filepath.Join(c.dir, "prerig-diff.md")); !strings.Contains(review, "**1 build: ") || !strings.Contains(review, "istio-proxy") {
		t.Errorf("the review of the pull request is\n%s", review)
	}
	c.write("k8s/same-user.yaml", `apiVersion: v1
kind: Pod
metadata: {name: same-user, namespace: shop}
spec:
  containers:
  - {name: app, image: "app:1", securityContext: {runAsUser: 1337}}
`)
	findings := maps.Clone(both)
	findings["check"], findings["fail-on"] = "false", "warning"
	if out, code := c.runAction(findings); code != 1 {
		t.Errorf("a warning among the findings: exit code %d\n%s", code, out)
	}
	findings["fail-on"] = "never"
	if out, code := c.runAction(findings); code != 0 {
		t.Errorf("findings that fail nothing: exit code %d\n%s", code, out)
	}
	wrong := maps.Clone(both)
	wrong["policies"] = "no-such.yaml\n"
	if out, code := c.runAction(wrong); code != 2 || !strings.Contains(out, "no-such.yaml") {
		t.Errorf("a policy that is not there: exit code %d\n%s", code, out)
	}
}

// TestGitLabComponent runs the scripts of the component's jobs, with its inputs filled in as GitLab does.
func TestGitLabComponent(t *testing.T) {
	_, jobs, ok := strings.Cut(readText(t, "../templates/prerig.yml"), "\n---\n")
	if !ok {
		t.Fatal("the component has no spec")
	}
	inputs := strings.NewReplacer("$[[ inputs.stage ]]", "test", "$[[ inputs.image ]]", "golang:latest", "$[[ inputs.version ]]", "",
		"$[[ inputs.paths ]]", "k8s", "$[[ inputs.policies ]]", "", "$[[ inputs.fail-on ]]", "error", "$[[ inputs.diff ]]", "false", "$[[ inputs.review ]]", "true")
	jobs = inputs.Replace(jobs)
	if strings.Contains(jobs, "$[[") {
		t.Errorf("an input has no value: %s", jobs)
	}
	var all map[string]struct {
		Variables    map[string]string `json:"variables"`
		BeforeScript []string          `json:"before_script"`
		Script       []string          `json:"script"`
	}
	if err := yaml.Unmarshal([]byte(jobs), &all); err != nil {
		t.Fatal(err)
	}
	c := newCheckout(t)
	run := func(job string, want int) {
		t.Helper()
		script := strings.Join(append(all[".prerig"].BeforeScript, all[job].Script...), "\n")
		if out, code := c.run(all[".prerig"].Variables, "sh", "-ec", script); code != want {
			t.Errorf("%s: exit code %d, want %d\n%s", job, code, want, out)
		}
	}
	run("prerig-check", 1)
	run("prerig-lint", 0)
	if out, code := c.run(nil, "prerig", "inject", "-i", "-q", "k8s"); code != 0 {
		t.Fatal(out)
	}
	run("prerig-check", 0)
	c.env = append(c.env, "CI_MERGE_REQUEST_DIFF_BASE_SHA="+c.git("rev-parse", "main"))
	run("prerig-review", 0)
	if review := readText(t, filepath.Join(c.dir, "prerig-diff.md")); !strings.Contains(review, "istio-proxy") {
		t.Errorf("the review of the merge request is\n%s", review)
	}
}

// TestPreCommitHooks runs what the hooks run.
func TestPreCommitHooks(t *testing.T) {
	var hooks []struct {
		ID    string   `json:"id"`
		Entry string   `json:"entry"`
		Args  []string `json:"args"`
	}
	if err := yaml.Unmarshal(read(t, "../.pre-commit-hooks.yaml"), &hooks); err != nil {
		t.Fatal(err)
	}
	entries := map[string][]string{}
	for _, hook := range hooks {
		entries[hook.ID] = append(strings.Fields(hook.Entry), hook.Args...)
	}
	c := newCheckout(t)
	for _, step := range []struct {
		hook string
		want int
	}{{"prerig-check", 1}, {"prerig-lint", 0}, {"prerig-inject", 0}, {"prerig-check", 0}, {"prerig-inject", 0}} {
		args := entries[step.hook]
		if len(args) == 0 {
			t.Fatalf("there is no hook %s", step.hook)
		}
		if out, code := c.run(nil, args[0], args[1:]...); code != step.want {
			t.Errorf("%s: exit code %d, want %d\n%s", step.hook, code, step.want, out)
		}
	}
}
