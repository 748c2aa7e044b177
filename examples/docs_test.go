// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	policyapi "github.com/prerig/prerig/fn/api/v1alpha1"
	pipelineapi "github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// repository is where README.md says that the sources are. In the tests git takes them from this working tree.
const repository = "https://github.com/prerig/prerig"

// stubs stand for programs that need a cluster or a chart repository: what they print was recorded, and what they are
// given to apply they drop.
var stubs = map[string]string{
	"kubectl": "#!/bin/sh\ncase $1 in apply) cat >/dev/null ;; *) cat \"$RECORDED/cluster.yaml\" ;; esac\n",
	"helm":    "#!/bin/sh\ncat \"$RECORDED/cluster.yaml\"\n",
}

// TestDocs runs the commands of README.md and of the pages in docs, each page from top to bottom as a reader would, and
// compares what they print with what the page shows. See markdown_test.go for the marks that a page can hold.
func TestDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("LEFT OUT: make e2e runs it, as it builds Prerig in two clones")
	}
	env := docsEnvironment(t)
	ran, skipped := 0, map[string]int{}
	for _, page := range docsPages(t) {
		blocks := parseMarkdown(t, page)
		t.Run(pageName(page), func(t *testing.T) { ran += runPage(t, page, blocks, env) })
		for _, b := range blocks {
			if b.notRun != "" && b.isShell() {
				skipped[b.notRun]++
				t.Run(fmt.Sprintf("%s:%d", pageName(page), b.line), func(t *testing.T) { checkFlags(t, b, env) })
			}
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		t.Logf("not run: %d blocks of commands, as %s", skipped[reason], reason)
	}
	t.Logf("%d blocks of commands were run", ran)
	if ran < 15 {
		t.Errorf("only %d blocks of commands were run", ran)
	}
}

// pageName is a page as the test calls it.
func pageName(page string) string {
	return strings.TrimPrefix(strings.TrimPrefix(page, "../"), "docs/")
}

// docsPages are the pages whose commands are run.
func docsPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"../README.md"}
	err := filepath.WalkDir("../docs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// docsEnvironment is that of a reader: our programs, kustomize and the stubs on the path, and git without settings of its own.
func docsEnvironment(t *testing.T) []string {
	t.Helper()
	env := environment(t, nil)
	bin := t.TempDir()
	for name, text := range stubs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := filepath.Abs("testdata/docs")
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			env[i] = "PATH=" + bin + string(filepath.ListSeparator) + path
		}
	}
	return append(env, "RECORDED="+recorded, "GIT_AUTHOR_NAME=Example", "GIT_AUTHOR_EMAIL=example@example.com",
		"GIT_COMMITTER_NAME=Example", "GIT_COMMITTER_EMAIL=example@example.com", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+sources(t)+".insteadOf", "GIT_CONFIG_VALUE_0="+repository)
}

// sources makes a repository of the working tree as it is, with what is not committed.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimRight(git(t, "..", "ls-files", "-co", "--exclude-standard", "-z"), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join("..", name))
		if errors.Is(err, os.ErrNotExist) { // deleted, and not committed
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "-A", "-f")
	git(t, dir, "commit", "-q", "-m", "the working tree")
	return dir
}

// runPage runs the commands of a page in one shell, so that what a block changes is there for the next one, and returns how
// many blocks it ran.
func runPage(t *testing.T, page string, blocks []block, env []string) int {
	t.Helper()
	dir := t.TempDir()
	manifests, empty := filepath.Join(dir, "manifests"), filepath.Join(dir, "empty")
	copyTree(t, "testdata/docs", manifests)
	git(t, manifests, "init", "-q", "-b", "main")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	script, steps, ran := pageScript(blocks, dir, manifests, empty)
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir, cmd.Env = manifests, env
	out, err := cmd.CombinedOutput()
	for i, s := range steps {
		printed, missing := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.out", i)))
		if missing != nil {
			t.Fatalf("%s:%d: did not run: %s", page, s.line, s.command)
		}
		if err != nil && i == lastRun(dir, len(steps)) {
			t.Fatalf("%s:%d: %s\n%v %s\n%s", page, s.line, s.command, err, out, printed)
		}
		if s.shown != nil && !matches(*s.shown, string(printed)) {
			t.Errorf("%s:%d: %s\nthe page shows something else (-page +printed):\n%s", page, s.line, s.command, cmp.Diff(*s.shown, string(printed)))
		}
	}
	return ran
}

// lastRun is the number of the last step that began.
func lastRun(dir string, steps int) int {
	for i := range steps {
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("%d.out", i))); err != nil {
			return i - 1
		}
	}
	return steps - 1
}

// pageScript returns the commands of a page as one script, in which each writes what it prints to a file of its own.
func pageScript(blocks []block, dir, manifests, empty string) (string, []step, int) {
	var script strings.Builder
	var steps []step
	ran := 0
	for _, b := range blocks {
		switch b.in {
		case inEmpty:
			fmt.Fprintf(&script, "cd %s\n", empty)
		case inManifests:
			fmt.Fprintf(&script, "cd %s\n", manifests)
		}
		if b.file != "" {
			fmt.Fprintf(&script, "mkdir -p $(dirname %s)\ncat >%s <<'END OF FILE'\n%sEND OF FILE\n", b.file, b.file, b.text)
		}
		if !b.isShell() || b.notRun != "" {
			continue
		}
		ran++
		for _, s := range b.steps() {
			fmt.Fprintf(&script, "exec >%s 2>&1\n", filepath.Join(dir, fmt.Sprintf("%d.out", len(steps))))
			if b.exit != 0 {
				fmt.Fprintf(&script, "code=0; { %s\n} || code=$?; test $code -eq %d\n", s.command, b.exit)
			} else {
				script.WriteString(s.command + "\n")
			}
			steps = append(steps, s)
		}
	}
	return script.String(), steps, ran
}

// flagWord is a long or short flag in a command line.
var flagWord = regexp.MustCompile(`^(--[a-zA-Z-]+|-[a-zA-Z])(=.*)?$`)

// checkFlags checks, of commands that cannot be run, that ours exist with the flags that are shown.
func checkFlags(t *testing.T, b block, env []string) {
	t.Helper()
	for _, s := range b.steps() {
		for line := range strings.Lines(continuation.ReplaceAllString(s.command, " ")) {
			line, _, _ = strings.Cut(line, " #")
			for part := range strings.SplitSeq(line, "|") {
				if words := strings.Fields(part); len(words) > 1 && words[0] == "prerig" {
					checkCommand(t, words[1:], env)
				}
			}
		}
	}
}

func checkCommand(t *testing.T, words []string, env []string) {
	t.Helper()
	names := words[:1]
	if slices.Contains([]string{"ambient", "daemon", "images", "token"}, words[0]) && len(words) > 1 {
		names = words[:2]
	}
	if names[0] == "daemon" && len(words) > 2 && words[1] == "token" {
		names = words[:3]
	}
	cmd := exec.Command(filepath.Join(built, "prerig"), append(slices.Clone(names), "--help")...)
	cmd.Env = env
	help, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("prerig %s: %v\n%s", strings.Join(names, " "), err, help)
		return
	}
	for _, word := range words[len(names):] {
		found := flagWord.FindStringSubmatch(word)
		if found != nil && !regexp.MustCompile(`(?m)^ +(-., )?`+regexp.QuoteMeta(found[1])+`[ ,]`).Match(help) {
			t.Errorf("prerig %s has no flag %s", strings.Join(names, " "), found[1])
		}
	}
}

// TestDocsYAML reads every YAML block of the pages; what says that it is one of our objects must be valid.
func TestDocsYAML(t *testing.T) {
	objects := 0
	for _, page := range docsPages(t) {
		for _, b := range parseMarkdown(t, page) {
			if b.lang != "yaml" {
				continue
			}
			for doc := range strings.SplitSeq(b.object(), "\n---\n") {
				ours, err := checkObject([]byte(doc))
				if err != nil {
					t.Errorf("%s:%d: %v", page, b.line, err)
				}
				if ours {
					objects++
				}
			}
		}
	}
	if objects < 6 {
		t.Errorf("found only %d objects of ours", objects)
	}
}

// checkObject reports whether a document is one of our objects, and what is wrong with it.
func checkObject(doc []byte) (bool, error) {
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &object); err != nil {
		return false, err
	}
	switch {
	case object.APIVersion != policyapi.APIVersion:
		return false, nil
	case object.Kind == policyapi.Kind:
		_, err := policyapi.Parse(doc)
		return true, err
	case object.Kind == pipelineapi.Kind:
		_, err := pipelineapi.Parse(doc)
		return true, err
	case object.Kind == pipelineapi.KindChartLock:
		_, err := pipelineapi.ParseChartLock(doc)
		return true, err
	case object.Kind == "ImageLock":
		return true, nil
	}
	return false, fmt.Errorf("there is no kind %s in %s", object.Kind, object.APIVersion)
}
