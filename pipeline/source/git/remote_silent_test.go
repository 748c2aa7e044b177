// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/tcptest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// wire stands between a client and a server, and falls silent without closing anything.
type wire struct {
	address string
	// down is how many bytes of the server the client gets; up is how many the server gets before both are left alone.
	down, up int64
	// deaf stops reading from the client as well.
	deaf bool
	// silent is told when it comes to that.
	silent chan struct{}
}

func newWire(t *testing.T, to string, limits wire) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	w := &wire{
		down: limits.down, up: limits.up, deaf: limits.deaf,
		address: listener.Addr().String(), silent: make(chan struct{}, 100),
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			go w.between(client, server)
		}
	}()
	return w
}

// between forwards until one of the limits is met, and goes on reading so that it learns when the client hangs up.
func (w *wire) between(client, server net.Conn) {
	defer server.Close()
	defer client.Close()
	var mute atomic.Bool
	fall := sync.OnceFunc(func() { mute.Store(true); w.silent <- struct{}{} })
	if w.down == 0 {
		fall()
	}
	var down sync.WaitGroup
	down.Go(func() {
		left := w.down
		buffer := make([]byte, 4096)
		for {
			n, err := server.Read(buffer[:min(max(left, 1), 4096)])
			if !mute.Load() {
				_, _ = client.Write(buffer[:n])
				if left -= int64(n); left <= 0 {
					fall()
				}
			}
			if err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 4096)
	for sent := int64(0); ; {
		n, err := client.Read(buffer)
		if sent += int64(n); sent > w.up {
			fall()
			for w.deaf && err == nil {
				// Nothing is read; a byte that cannot be written shows that the client has gone.
				time.Sleep(20 * time.Millisecond)
				_, err = client.Write([]byte{0})
			}
		}
		if err == nil && !mute.Load() {
			_, err = server.Write(buffer[:n])
		}
		if err != nil {
			server.Close()
			down.Wait()
			return
		}
	}
}

// open counts goroutines and descriptors of this process.
func open() (goroutines, files int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	return runtime.NumGoroutine(), len(entries)
}

// noneLeft waits until there are no more of them than before.
func noneLeft(t *testing.T, goroutines, files int) {
	t.Helper()
	var g, f int
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if g, f = open(); g <= goroutines && f <= files {
			return
		}
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines and %d open files, before %d and %d:\n%s", g, f, goroutines, files, stacks[:runtime.Stack(stacks, true)])
}

func noise(t *testing.T, size int) string {
	t.Helper()
	content := make([]byte, size)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(content)
}

// untilSilent runs something until the wire has fallen silent, and ends its context then.
func untilSilent(t *testing.T, w *wire, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-w.silent:
			time.Sleep(20 * time.Millisecond) // so that the client is waiting by now
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := do(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// pushLarge prepares a commit with a file, and gives what pushes it to a branch of its own.
func pushLarge(t *testing.T, m *git.Mirror, r *git.Remote, content []byte) func(context.Context) error {
	t.Helper()
	draft := m.NewDraft()
	data := git.CommitData{Author: "P", Email: "p@example.com", Date: time.Unix(1_700_000_000, 0), Message: "large\n"}
	var err error
	if data.Tree, err = draft.Edit(git.Hash{}, map[string][]byte{"large": content}); err != nil {
		t.Fatal(err)
	}
	hash, err := draft.Commit(data)
	if err != nil {
		t.Fatal(err)
	}
	var pack bytes.Buffer
	if err := draft.Pack(&pack); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		push, err := r.BeginPush(ctx)
		if err != nil {
			return err
		}
		defer push.Close()
		return push.Send(ctx, []git.Update{{Name: "refs/heads/out", New: hash}}, bytes.NewReader(pack.Bytes()))
	}
}

// A server that falls silent anywhere in a push or a fetch holds nobody for longer than the context and leaves nothing open.
func TestServerFallsSilent(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	repository.Commit("first", map[string]string{"large": noise(t, 2<<20)})
	sshd := server.NewSSH(t)
	const all = 1 << 40
	// More than a server that does not read takes in. Not in letters: the race detector makes it slow to look for what repeats.
	content := make([]byte, 4<<20)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		down, up int64
		deaf     bool
		push     bool // else a fetch
	}{
		"fetch, nothing":                {down: 0, up: all},
		"fetch, half the banner":        {down: 5, up: all},
		"fetch, after the banner":       {down: 12, up: all},
		"fetch, in the key exchange":    {down: 1000, up: all},
		"fetch, after the client's key": {down: all, up: 2500},
		"fetch, in the pack":            {down: 1 << 20, up: all},
		"push, nothing":                 {down: 0, up: all, push: true},
		"push, after the banner":        {down: 12, up: all, push: true},
		"push, in the pack":             {down: all, up: 1 << 20, push: true},
		"push, not read any more":       {down: all, up: 1 << 20, deaf: true, push: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, sshd.Address, wire{down: tc.down, up: tc.up, deaf: tc.deaf})
			address := "ssh://git@" + w.address + "/config.git"
			m := mirror(t, t.TempDir(), address, git.DefaultLimits())
			r := remote(t, address, map[string][]byte{"identity": sshd.Identity, "known_hosts": moved(sshd, w.address)})
			do := func(ctx context.Context) error { _, err := m.Fetch(ctx, r, git.Ref{}); return err }
			if tc.push {
				do = pushLarge(t, m, r, content)
			}
			goroutines, files := open()
			for range 3 {
				untilSilent(t, w, do)
			}
			noneLeft(t, goroutines, files)
		})
	}
}

// moved returns the server's key at another address.
func moved(sshd *gittest.SSH, address string) []byte {
	_, old, _ := strings.Cut(sshd.Address, ":")
	_, now, _ := strings.Cut(address, ":")
	return bytes.Replace(sshd.KnownHosts, []byte("]:"+old+" "), []byte("]:"+now+" "), 1)
}

// Without the end of a context, it is the time for the handshake that ends the wait.
func TestHandshakeTakesTooLong(t *testing.T) {
	server := gittest.New(t)
	sshd := server.NewSSH(t)
	for name, greet := range map[string]func(net.Conn) error{
		"nothing":             func(net.Conn) error { return nil },
		"banner":              func(c net.Conn) error { _, err := io.WriteString(c, "SSH-2.0-silent\r\n"); return err },
		"banner without end":  func(c net.Conn) error { return drip(c, "x") },
		"lines before banner": func(c net.Conn) error { return drip(c, "wait\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			address := tcptest.Serve(t, func(conn net.Conn) {
				if greet(conn) == nil {
					_, _ = io.Copy(io.Discard, conn)
				}
			})
			r := remote(t, "ssh://git@"+address+"/config.git", map[string][]byte{"identity": sshd.Identity, "known_hosts": moved(sshd, address)})
			r.SetPatience(200 * time.Millisecond)
			goroutines, files := open()
			for range 3 {
				_, listing := r.List(ctx)
				_, pushing := r.BeginPush(ctx)
				for service, err := range map[string]error{"git-upload-pack": listing, "git-receive-pack": pushing} {
					if err == nil || !strings.Contains(err.Error(), "did not start "+service+" within 200ms") && name != "lines before banner" {
						t.Errorf("got %v", err)
					}
				}
			}
			noneLeft(t, goroutines, files)
		})
	}
}

// drip writes a little from time to time, until the other side hangs up.
func drip(c net.Conn, text string) error {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A TLS server that does not shake hands, and one that sends a list of references without an end.
func TestHTTPSServerThatNeverEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := remote(t, "https://"+silent.Addr().String()+"/config.git", nil)
	goroutines, files := open()
	for range 3 {
		bounded, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		if _, err := r.List(bounded); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := r.BeginPush(bounded); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	// What the listener has not accepted is the kernel's.
	noneLeft(t, goroutines, files)

	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
		_, err := io.WriteString(w, line("# service=git-upload-pack\n")+"0000"+line(strings.Repeat("1", 40)+" refs/heads/main\x00 ofs-delta\n"))
		name := strings.Repeat("x", 60000) // few and long, so that the test is quick
		for i := 0; err == nil; i++ {
			_, err = io.WriteString(w, line(fmt.Sprintf("%040d refs/heads/%s%d\n", i, name, i)))
		}
	}))
	defer endless.Close()
	if _, err := remote(t, endless.URL+"/config.git", nil).List(ctx); err == nil || !strings.Contains(err.Error(), "list of references") {
		t.Errorf("got %v", err)
	}
}
