// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// The test binary is the renderer too, and several bad ones.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case render.Command:
			os.Exit(render.Main(os.Stdin, os.Stdout))
		case "garbage":
			fmt.Println("hello, this is not a frame at all, and goes on for longer than one")
			os.Exit(0)
		case "silent":
			os.Exit(0)
		case "killed":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "hang":
			time.Sleep(time.Hour)
		case "spin":
			for n := uint64(0); ; n++ {
				if n == 1<<63 {
					os.Exit(0)
				}
			}
		case "endless":
			for {
				if _, err := os.Stdout.Write([]byte("O\x00\x00\x00\x20{\"apiVersion\":\"v1\",\"kind\":\"A\"}\n\n")); err != nil {
					os.Exit(1)
				}
			}
		case "ask":
			for n := 0; ; n++ {
				name, _ := json.Marshal(map[string]string{"op": "lookup", "path": strings.Repeat("long", 15_000) + fmt.Sprint(n)})
				send('Q', name)
				var head [5]byte // of the request, and of answers
				if _, err := io.ReadFull(os.Stdin, head[:]); err != nil {
					os.Exit(1)
				}
				_, _ = io.CopyN(io.Discard, os.Stdin, int64(binary.BigEndian.Uint32(head[1:])))
			}
		case "long":
			send('Q', bytes.Repeat([]byte("x"), 1<<20))
			time.Sleep(time.Hour)
		case "eat":
			var all [][]byte
			for len(all) < 1<<20 {
				all = append(all, bytes.Repeat([]byte{1}, 1<<20))
			}
			os.Exit(len(all) % 2)
		case "probe":
			probe()
		case "once":
			renderOnce()
		case "start":
			startOnAndOn()
		}
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
		prerig, err := testprograms.PrerigPath()
		if err != nil {
			t.Fatal(err)
		}
		options.Command = []string{prerig, render.Command}
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
