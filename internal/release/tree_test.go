// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// standIns are small programs in the places of those that are released, which take minutes to build for all platforms.
var standIns = map[string]string{
	"go.mod":                               "module github.com/prerig/prerig\n\ngo 1.26.0\n",
	"LICENSE":                              "Apache-2.0\n",
	"CHANGELOG.md":                         "# Changes\n\n## Unreleased\n\n- Something new.\n\n## v0.1.0\n\n- The first.\n",
	"examples/prerig-inject/shop.yaml":     "kind: Deployment\n",
	"examples/prerig-inject/.expected/x":   "for tests\n",
	"fn/version/version.go":                "package version\n\nvar linkedCommit, linkedDate string\n\nfunc Text() string { return linkedCommit + linkedDate }\n",
	"pipeline/render/program.go":           "package render\n\nvar builtWith string\n\nfunc BuiltWith() string { return builtWith }\n",
	"fn/cmd/prerig-fn/main.go":             printing("fn/version", "from.Text()"),
	"pipeline/cmd/prerig/main.go":          printing("pipeline/render", "from.BuiltWith()"),
	"pipeline/cmd/prerig-render/main.go":   "package main\n\nfunc main() { println(\"renders\") }\n",
	"pipeline/cmd/prerig-validate/go.mod":  "module github.com/prerig/prerig/pipeline/cmd/prerig-validate\n\ngo 1.26.0\n",
	"pipeline/cmd/prerig-validate/main.go": "package main\n\nfunc main() { println(\"validates\") }\n",
	"fn/internal/licenses/main.go": "package main\n\nimport \"os\"\n\nfunc main() {\n" +
		"\tif err := os.WriteFile(os.Args[2], []byte(\"licences\"), 0o666); err != nil {\n\t\tpanic(err)\n\t}\n}\n",
	"pipeline/internal/manual/main.go": "package main\n\nimport \"os\"\n\nfunc main() {\n\tdir := os.Args[len(os.Args)-1]\n" +
		"\tfor _, name := range []string{\"man/man1/prerig.1\", \"completions/prerig.bash\", \"completions/_prerig\", \"completions/prerig.fish\", \"completions/prerig.ps1\"} {\n" +
		"\t\tos.MkdirAll(dir+\"/man/man1\", 0o777)\n\t\tos.MkdirAll(dir+\"/completions\", 0o777)\n" +
		"\t\tif err := os.WriteFile(dir+\"/\"+name, []byte(name), 0o666); err != nil {\n\t\t\tpanic(err)\n\t\t}\n\t}\n}\n",
}

func printing(pkg, call string) string {
	return "package main\n\nimport from \"github.com/prerig/prerig/" + pkg + "\"\n\nvar version string\n\nfunc main() { println(version, " + call + ") }\n"
}

// newTree makes a repository with stand-ins for the programs, and the real files to deploy.
func newTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range standIns {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS("../../deploy")); err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "--quiet", "--initial-branch=main")
	commitAll(t, dir, "all: begin")
	return dir
}

func commitAll(t *testing.T, dir, subject string) {
	t.Helper()
	runGit(t, dir, "add", "--all")
	runGit(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", subject)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_DATE=2026-11-23T20:00:00Z", "GIT_COMMITTER_DATE=2026-11-23T20:00:00Z")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
