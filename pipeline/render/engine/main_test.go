// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// The test binary is a renderer that was taken over, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		probe()
	}
	os.Exit(m.Run())
}

var ctx = context.Background()

// build makes a tree from paths; a value that starts with "->" is a symbolic link.
func build(t testing.TB, files map[string]string) *tree.Tree {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	for name, content := range files {
		mode := tree.File
		if target, ok := strings.CutPrefix(content, "->"); ok {
			mode, content = tree.Link, target
		}
		if err := b.Add(name, mode, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// pool is one whose renderers are those of the released program where nothing else is asked for: the race detector, with which this one
// takes several times as long to start and to render, sees nothing of what another process does.
func pool(t testing.TB, options render.Options) *render.Pool {
	t.Helper()
	if len(options.Command) == 0 {
		program, err := testprograms.RendererPath()
		if err != nil {
			t.Fatal(err)
		}
		options.Command = []string{program}
	}
	p, err := render.NewPool(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func request(path string) render.Request {
	return render.Request{Path: path, Limits: render.DefaultLimits()}
}

func renderFiles(t testing.TB, files map[string]string, r render.Request) (*render.Response, tree.Record, error) {
	t.Helper()
	view := tree.NewView(build(t, files), r.Limits.Read)
	response, err := pool(t, render.Options{}).Render(ctx, view, r)
	return response, view.Record(), err
}

func text(r *render.Response) string {
	var all [][]byte
	for _, object := range r.Objects {
		all = append(all, object.YAML)
	}
	return string(bytes.Join(all, []byte("---\n")))
}

// tools are the real commands that results are compared with.
var tools = sync.OnceValues(func() (string, error) {
	return testprograms.Build(testprograms.PrerigFn, testprograms.Kustomize)
})

// realKustomize runs the kustomize command with the exec function.
func realKustomize(t testing.TB, files map[string]string, path string) (string, error) {
	t.Helper()
	bin, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, content := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, "->"); ok {
			if err := os.Symlink(target, full); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(filepath.Join(bin, "kustomize"), "build", "--enable-alpha-plugins", "--enable-exec", filepath.Join(root, path))
	command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	var out, stderr bytes.Buffer
	command.Stdout, command.Stderr = &out, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return out.String(), nil
}
