// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server"
)

// overSocket asks the daemon over its socket.
func (c *chaos) overSocket(method, path string, request, answer any) {
	c.t.Helper()
	overSocket(c.t, c.c.Socket(), method, path, request, answer)
}

func overSocket(t *testing.T, socket, method, path string, request, answer any) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(method, "http://prerig"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("it is answered with %s: %s", resp.Status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}

// app0 is the only pipeline as the daemon shows it.
func (c *chaos) app0() server.Pipeline {
	c.t.Helper()
	var all []server.Pipeline
	c.overSocket(http.MethodGet, "/api/v1/pipelines", nil, &all)
	if len(all) != 1 {
		c.t.Fatalf("there are %d pipelines", len(all))
	}
	return all[0]
}

// isReady waits until the only pipeline is.
func (c *chaos) isReady(when string) {
	c.t.Helper()
	c.eventually(when, func() string {
		if p := c.app0(); p.State != server.StateReady {
			return p.State + ": " + p.Message
		}
		return ""
	})
}

// suspend suspends the only pipeline, or lets all run that are held.
func (c *chaos) suspend(request server.Request) {
	c.t.Helper()
	c.overSocket(http.MethodPost, "/api/v1/suspend", request, &server.Answer{})
}

// restarted has something done to the files of the daemon while it is away.
func (c *chaos) restarted(p *process, do func()) {
	c.t.Helper()
	p.stopped(func() {
		do()
		if err := os.Truncate(c.logs, 0); err != nil {
			c.t.Fatal(err)
		}
		c.accepted = nil
	})
	if !p.awaitUp(2 * time.Minute) {
		text, _ := os.ReadFile(c.logs)
		c.t.Fatalf("the daemon does not start: %s", text)
	}
}

// rewrite changes files of the queue.
func (c *chaos) rewrite(pattern string, change func([]byte) []byte) {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.c.State, "queue", "jetstream", "*", "streams", filepath.FromSlash(pattern)))
	if err != nil || len(found) == 0 {
		c.t.Fatalf("files like %s: %v, %v", pattern, found, err)
	}
	for _, file := range found {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, change(data), 0o600)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestFinding11DamagedStateSuspends loses the state with a suspension in it: nothing is published until somebody says that it may,
// and then it is over, also after another start.
func TestFinding11DamagedStateSuspends(t *testing.T) {
	for _, d := range damages {
		if d.name != "empty" && d.name != "zeros" {
			continue // of others the server finds more or less again
		}
		t.Run(d.name, func(t *testing.T) {
			c := newChaos(t, size{pipelines: 1})
			p := c.serve(c.c, false)
			c.settle()
			c.isReady("a first start")
			c.suspend(server.Request{All: true, Suspended: true})
			c.restarted(p, func() { c.rewrite("KV_*_STATE/msgs/*.blk", d.damage) })
			if state := c.app0(); state.State != server.StateSuspended || state.Message != status.HeldMessage {
				t.Fatalf("it is %s: %s", state.State, state.Message)
			}
			published := c.shown(0)
			c.newest[0]++
			commit := c.repository.Commit("while it is held", map[string]string{"apps/app0/app.yaml": deployment("app0", fmt.Sprintf("image:%d", c.newest[0]))})
			if code := c.tell(commit); code != http.StatusAccepted {
				t.Errorf("the webhook was answered with %d", code)
			}
			c.eventually("waiting for the event to be planned", func() string { return strings.Join(c.unplanned(), " ") })
			if got := c.shown(0); got != published {
				t.Errorf("it was published: %d after %d", got, published)
			}
			c.suspend(server.Request{All: true, Held: true})
			c.settle()
			c.restarted(p, func() {})
			c.isReady("after it was confirmed, and another start")
			c.next()
			c.verify()
		})
	}
}

// TestFinding11DamagedDescriptionIsMended damages the checksums of all streams: what they hold stays, a suspension among it, and only
// the first start warns.
func TestFinding11DamagedDescriptionIsMended(t *testing.T) {
	c := newChaos(t, size{pipelines: 1})
	p := c.serve(c.c, false)
	c.settle()
	c.suspend(server.Request{All: true, Suspended: true})
	for _, file := range []string{"meta.sum", "meta.inf"} {
		c.restarted(p, func() {
			c.rewrite("*/"+file, func(data []byte) []byte { return append(bytes.Clone(data[1:]), '0') })
		})
		if logged := c.lastLogged(100); !strings.Contains(logged, "NATS") {
			t.Errorf("%s: the start says nothing: %s", file, logged)
		}
		if state := c.app0(); state.State != server.StateSuspended || state.Message == status.HeldMessage {
			t.Errorf("%s: it is %s: %s", file, state.State, state.Message)
		}
		c.restarted(p, func() {})
		if logged := c.lastLogged(100); strings.Contains(logged, "NATS") {
			t.Errorf("%s: it is not mended: %s", file, logged)
		}
	}
}
