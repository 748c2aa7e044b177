// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// fakeGH answers like gh api: the comments are those of the pages, and what is sent goes to the file sent.
const fakeGH = `#!/bin/bash
set -eu
[ "$1" = api ]
shift
method=POST filter= file= path=
while [ $# -gt 0 ]; do
  case "$1" in
  --paginate | --silent) ;;
  --method) method=$2; shift ;;
  --jq) filter=$2; shift ;;
  -F) file=${2#body=@}; shift ;;
  *) path=$1 ;;
  esac
  shift
done
if [ -n "$filter" ]; then
  [ "$path" = "repos/org/shop/issues/7/comments?per_page=100" ]
  cat page-1.json page-2.json | jq -r "$filter"
else
  { echo "$method $GH_HOST/$path"; cat "$file"; } >> sent
fi
`

// commentScripts are the scripts that comment on GitHub: that of the action, and that of the workflow to copy.
func commentScripts(t *testing.T) map[string]string {
	t.Helper()
	var a action
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Name, Run string
			} `json:"steps"`
		} `json:"jobs"`
	}
	for name, to := range map[string]any{"../action.yml": &a, "ci/github-actions.yaml": &workflow} {
		if err := yaml.Unmarshal(read(t, name), to); err != nil {
			t.Fatal(err)
		}
	}
	scripts := map[string]string{}
	for _, step := range a.Runs.Steps {
		if step.Name == "Comment" {
			scripts["action"] = step.Run
		}
	}
	for _, step := range workflow.Jobs["diff"].Steps {
		if step.Name == "Comment" {
			scripts["workflow"] = step.Run
		}
	}
	if len(scripts) != 2 {
		t.Fatalf("scripts are missing: %v", scripts)
	}
	return scripts
}

// TestGitHubCommentIsItsOwn: a comment of another workflow, which is by the same bot, or of a person is left as it is.
func TestGitHubCommentIsItsOwn(t *testing.T) {
	for _, program := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	const (
		others = `[{"id": 1, "user": {"login": "mia"}, "body": "<!-- prerig-diff -->\nI quote"},
{"id": 2, "user": {"login": "github-actions[bot]"}, "body": "coverage"}]`
		ours = `[{"id": 3, "user": {"login": "github-actions[bot]"}, "body": "<!-- prerig-diff -->\nold"},
{"id": 4, "user": {"login": "github-actions[bot]"}, "body": "<!-- prerig-diff -->\nolder"},
{"id": 5, "user": {"login": "github-actions[bot]"}, "body": "lint"}]`
		text = "<!-- prerig-diff -->\n## What changes\n"
	)
	for name, script := range commentScripts(t) {
		for second, want := range map[string]string{
			"[]": "POST github.com/repos/org/shop/issues/7/comments\n" + text,
			ours: "PATCH github.com/repos/org/shop/issues/comments/3\n" + text,
		} {
			c := &checkout{t: t, dir: t.TempDir()}
			for file, text := range map[string]string{"bin/gh": fakeGH, "page-1.json": others, "page-2.json": second, "diff.md": "## What changes\n"} {
				c.write(file, text)
			}
			if err := os.Chmod(filepath.Join(c.dir, "bin/gh"), 0o755); err != nil {
				t.Fatal(err)
			}
			c.env = append(os.Environ(), "PATH="+filepath.Join(c.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
				"GITHUB_REPOSITORY=org/shop", "GITHUB_SERVER_URL=https://github.com", "NUMBER=7", "FILE=diff.md")
			if out, code := c.run(nil, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script); code != 0 {
				t.Fatalf("%s: exit code %d\n%s", name, code, out)
			}
			if got := readText(t, filepath.Join(c.dir, "sent")); got != want {
				t.Errorf("%s sends\n%s\nwant\n%s", name, got, want)
			}
		}
	}
}
