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
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// The test binary is several bad renderers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
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
		case "empty":
			send('D', []byte(`{"type":"Kustomize","decisions":[`+strings.Repeat("{},", 200_000)+`{}],"lines":[]}`))
			os.Exit(0)
		case "many", "brief":
			go func() { _, _ = io.Copy(io.Discard, os.Stdin) }()
			for n := range 20_000 {
				if os.Args[1] == "many" {
					send('O', []byte(`{"apiVersion":"v","kind":"A"}`+"\n"))
				} else {
					send('Q', fmt.Appendf(nil, `{"op":"read","path":"%d"}`, n))
				}
			}
			send('D', []byte(`{"type":"Kustomize","lines":[]}`))
			os.Exit(0)
		case "eat":
			var all [][]byte
			for len(all) < 1<<20 {
				all = append(all, bytes.Repeat([]byte{1}, 1<<20))
			}
			os.Exit(len(all) % 2)
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

// send writes a frame.
func send(kind byte, content []byte) {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content)))
	_, _ = os.Stdout.Write(append(head, content...))
}

func text(r *render.Response) string {
	var all [][]byte
	for _, object := range r.Objects {
		all = append(all, object.YAML)
	}
	return string(bytes.Join(all, []byte("---\n")))
}
