// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// prerig is the program, built from the sources as they are.
var prerig string

func TestMain(m *testing.M) {
	if _, err := exec.LookPath("git"); err != nil {
		fmt.Println("the git command is not installed")
		return
	}
	dir, err := testprograms.Build(testprograms.Prerig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	prerig = filepath.Join(dir, testprograms.Prerig.Name)
	os.Exit(m.Run())
}

// example reads the files of an example, but not what is expected of it.
func example(t *testing.T, name string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(filepath.Join("..", "..", "..", "examples", name))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".expected" {
				return fs.SkipDir
			}
			return err
		}
		text, err := fs.ReadFile(root, path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// decode reads every document of a file into v, which is made anew for each.
func decode[T any](t *testing.T, text string) []T {
	t.Helper()
	var out []T
	for doc := range strings.SplitSeq(text, "---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		var v T
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		out = append(out, v)
	}
	return out
}

// served is an example whose repository is on a Git server, rendered by a daemon.
type served struct {
	repository *testbed.Repository
	daemon     *testbed.Daemon
	pipelines  map[string]string // by the file's name
}

// serve puts an example's files into a repository and starts a daemon with its pipelines, in which words are replaced, and
// with secrets, of which each is a file.
func serve(t *testing.T, files, secrets map[string]string, replace ...string) served {
	t.Helper()
	dir := t.TempDir()
	if err := testbed.Write(filepath.Join(dir, "daemon", "secrets"), secrets); err != nil {
		t.Fatal(err)
	}
	git, err := testbed.ServeGit(filepath.Join(dir, "git"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { git.Close() })
	repository, err := git.Repository(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer(append(replace, "https://git.example.com/team/config.git", repository.URL)...)
	pipelines := map[string]string{}
	for name, text := range files {
		if base, ok := strings.CutPrefix(name, "pipelines/"); ok {
			pipelines[base] = words.Replace(text)
			files[name] = pipelines[base]
		}
	}
	if _, err := repository.Commit(t.Context(), "first", files); err != nil {
		t.Fatal(err)
	}
	daemon, err := testbed.Serve(context.Background(), prerig, filepath.Join(dir, "daemon"), pipelines)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := daemon.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := served{repository, daemon, pipelines}
	s.eventually(t, "the first render", func() bool { return repository.Head("rendered") != "" })
	return s
}

func (s served) eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s: it did not come\n%s", what, s.daemon.Problems())
		}
	}
}

// shell runs a command in a directory with nothing in its environment but what is given.
func shell(t *testing.T, dir string, env []string, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	program := argv[0]
	if program == "prerig" {
		program = prerig
	}
	command := exec.Command(program, argv[1:]...)
	command.Dir = dir
	command.Env = append([]string{"PATH=" + filepath.Dir(prerig) + string(filepath.ListSeparator) + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}, env...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	return out.String(), errs.String(), err
}

// checkInjected expects the shop's two objects, the Deployment with a proxy.
func checkInjected(t *testing.T, stream string) {
	t.Helper()
	kinds := map[string]bool{}
	for _, o := range decode[map[string]any](t, stream) {
		kind, _ := o["kind"].(string)
		kinds[kind] = true
	}
	if len(kinds) != 2 || !kinds["Deployment"] || !kinds["Service"] || strings.Count(stream, "name: istio-proxy\n") != 1 {
		t.Errorf("want a Deployment with a proxy and a Service, got kinds %v:\n%s", kinds, stream)
	}
}
