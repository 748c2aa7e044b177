// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine"
)

// takenOver is the command of a renderer that misbehaves where the path that it builds says so, and else is the real one.
const takenOver = "renderer-taken-over"

func init() {
	if len(os.Args) == 2 && os.Args[1] == takenOver {
		os.Exit(misbehave())
	}
}

// misbehave is the renderer that reads what comes through a takeover.
func misbehave() int { return engine.Main(&takeover{in: os.Stdin}, os.Stdout) }

// takeover reads the frames that come to a renderer, and misbehaves at a request whose path says how. It looks at every one: a renderer
// may be asked by several pipelines that have the same trust, one after the other.
type takeover struct {
	in   io.Reader
	kept []byte // of a frame that was read
	rest uint32 // of a frame that comes through
}

// Read gives the frames as they are.
func (t *takeover) Read(p []byte) (int, error) {
	if len(t.kept) == 0 && t.rest == 0 {
		if err := t.next(); err != nil {
			return 0, err
		}
	}
	if len(t.kept) > 0 {
		n := copy(p, t.kept)
		t.kept = t.kept[n:]
		return n, nil
	}
	n, err := t.in.Read(p[:min(len(p), int(t.rest))])
	t.rest -= uint32(n)
	return n, err
}

// next reads the head of the next frame, and the whole of one that is a request.
func (t *takeover) next() error {
	const request = 'R' // the kind of a frame, as render has it
	head := make([]byte, 5)
	if _, err := io.ReadFull(t.in, head); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if head[0] != request {
		t.kept, t.rest = head, size
		return nil
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(t.in, content); err != nil {
		return err
	}
	misbehaveAsAsked(content)
	t.kept = append(head, content...)
	return nil
}

// misbehaveAsAsked does not come back for a request whose path has the name of a misdeed.
func misbehaveAsAsked(content []byte) {
	var request render.Request
	_ = json.Unmarshal(content, &request)
	how, _ := strings.CutPrefix(path.Base(request.Path), "bad-")
	forever := func(out *os.File, text string) {
		for {
			if _, err := out.WriteString(text); err != nil {
				os.Exit(1)
			}
		}
	}
	switch how {
	case "hang":
		time.Sleep(time.Hour)
	case "spin":
		for n := uint64(1); n != 0; n++ {
		}
	case "busy": // a little less than what counts as slow
		for begin := time.Now(); time.Since(begin) < 2500*time.Millisecond; {
		}
		os.Exit(0)
	case "eat":
		var all [][]byte
		for len(all) < 1<<20 {
			all = append(all, bytes.Repeat([]byte{1}, 1<<20))
		}
	case "garbage":
		forever(os.Stdout, "this is not a message, and there is no end to it\n")
	case "flood":
		object := append([]byte(`{"apiVersion":"v1","kind":"A"}`+"\n"), bytes.Repeat([]byte("# much\n"), 100_000)...)
		forever(os.Stdout, string(binary.BigEndian.AppendUint32([]byte("O"), uint32(len(object))))+string(object))
	case "errors":
		forever(os.Stderr, "so much to say on standard error\n")
	case "silent":
		os.Exit(0)
	}
}

// startWith starts the daemon with options, for tests that need more than start gives.
func (f *fixture) startWith(o daemon.Options) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	if o.Log == nil {
		var out io.Writer = io.Discard
		if os.Getenv("PRERIG_TEST_LOGS") != "" {
			out = os.Stderr
		}
		o.Log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	o.Version = "test"
	if len(o.Render.Command) == 0 {
		o.Render.Command = renderer(f.t)
	}
	var first sync.Once
	o.Listening = func(hooks, page string) {
		first.Do(func() {
			f.hooks, f.page = hooks, page
			close(ready)
		})
	}
	go func() { done <- daemon.Serve(ctx, f.c, o) }()
	select {
	case <-ready:
	case err := <-done:
		f.t.Fatal(err)
	case <-time.After(30 * time.Second):
		f.t.Fatal("the daemon did not start")
	}
	f.stop = func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				f.t.Errorf("the daemon ended with %v", err)
			}
		case <-time.After(time.Minute):
			f.t.Error("the daemon does not end")
		}
		f.stop = func() {}
	}
	f.t.Cleanup(func() { f.stop() })
}

// renderer is the command of the renderers of all daemons that do not ask for another: that of the released program, which starts in
// a tenth of the time of this one with its race detector.
func renderer(t *testing.T) []string {
	t.Helper()
	program, err := testprograms.RendererPath()
	if err != nil {
		t.Fatal(err)
	}
	return []string{program}
}

// self is this program, for processes of its own: without the race detector, with which they would take several times as long to start
// and to do anything. What they do is what this process does too, with the detector.
func self(t testing.TB) string {
	t.Helper()
	name, err := os.Executable()
	if raceDetector {
		name, err = builtSelf()
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// builtSelf builds this program, once.
var builtSelf = sync.OnceValues(testprograms.TestsOf("github.com/prerig/prerig/pipeline/internal/system").Path)
