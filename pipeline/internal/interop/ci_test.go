// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// commenter stands for the commands gh and curl: it has no comment yet, and keeps the text that they are to send, at GitHub without the
// line that marks it.
const commenter = `#!/bin/sh
case "$*" in
*diff.md*) cp diff.md "$COMMENT" ;;
*body=@prerig-comment.md*) sed 1d prerig-comment.md >"$COMMENT" ;;
"api --paginate repos/org/shop/issues/"*) ;;
*) exit 9 ;;
esac
`

// ciStep is a step of a workflow.
type ciStep struct {
	ID, Uses, Run string
	Env           map[string]string
}

// ciSteps returns the steps of both files from the comparison on.
func ciSteps(t *testing.T, files map[string]string) map[string][]ciStep {
	t.Helper()
	type workflow struct {
		Jobs map[string]struct{ Steps []ciStep }
	}
	var github []ciStep
	for _, step := range decode[workflow](t, files["github-actions.yaml"])[0].Jobs["diff"].Steps {
		if len(github) > 0 || strings.Contains(step.Run, "prerig diff") {
			github = append(github, step)
		}
	}
	type pipeline struct {
		Job struct{ Script []string } `json:"rendered-diff"`
	}
	script := strings.Join(decode[pipeline](t, files["gitlab-ci.yaml"])[0].Job.Script, "\n")
	if len(github) != 3 || !strings.Contains(script, "prerig diff") {
		t.Fatalf("the steps are %q and %q", github, script)
	}
	return map[string][]ciStep{"GitHub": github, "GitLab": {{Run: script}}}
}

// play runs steps one after the other, as long as none fails, and gives the exit code of the last with what they wrote.
func play(t *testing.T, work string, steps []ciStep) (code int, diff, comment string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"gh", "curl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(commenter), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	outputs, summary, sent := filepath.Join(dir, "outputs"), filepath.Join(dir, "summary.md"), filepath.Join(dir, "comment.md")
	path := strings.Join([]string{dir, filepath.Dir(prerig), os.Getenv("PATH")}, string(filepath.ListSeparator))
	env := []string{"PATH=" + path, "COMMENT=" + sent, "GITHUB_STEP_SUMMARY=" + summary, "GITHUB_OUTPUT=" + outputs, "PRERIG_COMMENT_TOKEN=x",
		"GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=org/shop", "CI_API_V4_URL=x", "CI_PROJECT_ID=1", "CI_MERGE_REQUEST_IID=1"}
	os.Remove(filepath.Join(work, "diff.md"))
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
	id := ""
	for _, step := range steps {
		own := env[:len(env):len(env)]
		for name, value := range step.Env {
			for line := range strings.Lines(read(outputs)) {
				key, output, _ := strings.Cut(strings.TrimSpace(line), "=")
				value = strings.ReplaceAll(value, "${{ steps."+id+".outputs."+key+" }}", output)
			}
			own = append(own, name+"="+value)
		}
		_, stderr, err := shell(t, work, own, "sh", "-euc", step.Run)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
			t.Logf("exit code %d: %s", code, stderr)
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if step.ID != "" {
			id = step.ID
		}
	}
	diff = read(filepath.Join(work, "diff.md"))
	if len(steps) > 1 && read(summary) != diff {
		t.Errorf("the summary is %q, the difference %q", read(summary), diff)
	}
	return code, diff, read(sent)
}

// TestCI runs the steps of both files in the checkout of a pull request.
func TestCI(t *testing.T) {
	files := example(t, "ci")
	all := ciSteps(t, files)
	s := serve(t, files, nil)
	work := s.repository.Work
	before := s.repository.Head("rendered")
	changed := strings.Replace(files["apps/shop/web.yaml"], ":2.14", ":2.15", 1)
	// A registry that does not answer, beside the branch that does.
	unread := files["pipelines/shop.yaml"] + "  - oci:\n      url: oci://127.0.0.1:1/shop\n      insecure: true\n"
	difference := []string{":2.14\n", ":2.15\n", "Deployment shop/web"}
	for name, tc := range map[string]struct {
		app, pipeline string
		code          int
		has, lacks    []string
	}{
		"nothing changes":               {files["apps/shop/web.yaml"], files["pipelines/shop.yaml"], 0, []string{"nothing would change"}, []string{"```diff"}},
		"an image changes":              {changed, files["pipelines/shop.yaml"], 0, difference, []string{"istio-proxy", "error"}},
		"one place cannot be read":      {changed, unread, 2, append(difference, "1 place could not be read"), []string{"istio-proxy"}},
		"the pipelines cannot be found": {changed, "", 2, nil, []string{"#"}},
	} {
		for on, steps := range all {
			t.Run(name+" on "+on, func(t *testing.T) {
				if err := os.WriteFile(filepath.Join(work, "apps", "shop", "web.yaml"), []byte(tc.app), 0o600); err != nil {
					t.Fatal(err)
				}
				definition := filepath.Join(work, "pipelines", "shop.yaml")
				if err := os.WriteFile(definition, []byte(tc.pipeline), 0o600); err != nil {
					t.Fatal(err)
				}
				if tc.pipeline == "" {
					if err := os.Remove(definition); err != nil {
						t.Fatal(err)
					}
				}
				code, diff, comment := play(t, work, steps)
				if code != tc.code {
					t.Errorf("exit code %d, want %d", code, tc.code)
				}
				if comment != diff {
					t.Errorf("the comment is %q, the difference %q", comment, diff)
				}
				for _, want := range tc.has {
					if !strings.Contains(diff, want) {
						t.Errorf("the comment lacks %q:\n%s", want, diff)
					}
				}
				for _, not := range tc.lacks {
					if strings.Contains(diff, not) {
						t.Errorf("the comment has %q:\n%s", not, diff)
					}
				}
			})
		}
	}
	if s.repository.Head("rendered") != before {
		t.Error("looking has published something")
	}
}
