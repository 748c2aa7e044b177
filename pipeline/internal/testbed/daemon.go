// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prerig/prerig/internal/freeport"
)

// Daemon is a prerig serve in a process of its own.
type Daemon struct {
	// Hooks is the URL for webhooks, without the receiver's name.
	Hooks string
	// PID of the process.
	PID int
	// Key signs webhooks.
	Key     string
	command *exec.Cmd

	mu      sync.Mutex
	entries []Entry
	news    chan struct{} // closed when an entry is added
	tail    bytes.Buffer
	ended   chan struct{}
	err     error
}

// Entry is a line of the daemon's log.
type Entry struct {
	// At is when the line was read here.
	At time.Time
	// Place in the log, for Entry.
	Place int
	// Message and Fields of the line.
	Message string
	Fields  map[string]any
}

// Serve starts the program's daemon with pipelines, files of RenderPipelines by name, and everything that it keeps below
// dir. It listens on a free port of this machine, with a receiver for GitHub's pushes, and has no page.
func Serve(ctx context.Context, program, dir string, pipelines map[string]string) (*Daemon, error) {
	hooks, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		"prerig.yaml": "pipelines: pipelines\npolicies: policies\nsecrets: secrets\nstate: state\nlisten: " + hooks + "\n" +
			"admin: {listen: \"\"}\nlog: {format: json}\nreceivers:\n- {name: git, provider: github, secret: hook.key}\n",
	}
	for name, text := range pipelines {
		files["pipelines/"+name] = text
	}
	for _, name := range []string{"pipelines", "policies", "secrets"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, fmt.Errorf("setting up the daemon: %w", err)
		}
	}
	return Start(ctx, program, dir, hooks, files)
}

// Start writes files below dir and starts the program's daemon with prerig.yaml, one of them, which has the address
// hooks for webhooks and logs JSON. The key of its receivers is in hook.key, which Start writes.
func Start(ctx context.Context, program, dir, hooks string, files map[string]string) (*Daemon, error) {
	d := &Daemon{Hooks: "http://" + hooks + "/hook", Key: RandomKey(), news: make(chan struct{}), ended: make(chan struct{})}
	if err := Write(dir, files); err != nil {
		return nil, err
	}
	if err := Write(dir, map[string]string{"hook.key": d.Key + "\n"}); err != nil {
		return nil, err
	}
	d.command = exec.CommandContext(ctx, program, "serve", "--config", filepath.Join(dir, "prerig.yaml"))
	d.command.Cancel = func() error { return d.command.Process.Signal(syscall.SIGTERM) }
	d.command.WaitDelay = 10 * time.Second
	detach(d.command)
	logs, err := d.command.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the daemon: %w", err)
	}
	if err := d.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the daemon: %w", err)
	}
	d.PID = d.command.Process.Pid
	go d.readLog(logs)
	if err := d.waitUntilReady(ctx); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

// RandomKey returns a key of 32 hexadecimal digits.
func RandomKey() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random)
	return hex.EncodeToString(random)
}

// readLog reads the log until the process ends.
func (d *Daemon) readLog(logs io.Reader) {
	lines := bufio.NewScanner(logs)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		at := time.Now()
		var fields map[string]any
		_ = json.Unmarshal(lines.Bytes(), &fields)
		message, _ := fields["msg"].(string)
		d.mu.Lock()
		if fields["level"] != "INFO" && d.tail.Len() < 10_000 {
			d.tail.Write(append(lines.Bytes(), '\n'))
		}
		d.entries = append(d.entries, Entry{At: at, Place: len(d.entries), Message: message, Fields: fields})
		close(d.news)
		d.news = make(chan struct{})
		d.mu.Unlock()
	}
	d.err = d.command.Wait()
	close(d.ended)
}

// waitUntilReady waits until webhooks are taken.
func (d *Daemon) waitUntilReady(ctx context.Context) error {
	for {
		if resp, err := http.Get(d.Hooks[:len(d.Hooks)-len("/hook")] + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-d.ended:
			return fmt.Errorf("starting the daemon: it ended: %w\n%s", d.err, d.Problems())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Problems are the warnings and errors of the log.
func (d *Daemon) Problems() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tail.String()
}

// Mark returns a place in the log, for Entry.
func (d *Daemon) Mark() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.entries)
}

// Entry waits for the first line of the log after a mark that matches.
func (d *Daemon) Entry(ctx context.Context, mark int, match func(Entry) bool) (Entry, error) {
	for {
		d.mu.Lock()
		entries, news := d.entries[mark:], d.news
		d.mu.Unlock()
		for _, e := range entries {
			if match(e) {
				return e, nil
			}
		}
		mark += len(entries)
		select {
		case <-news:
		case <-d.ended:
			return Entry{}, fmt.Errorf("waiting for the daemon: it ended: %w\n%s", d.err, d.Problems())
		case <-ctx.Done():
			return Entry{}, fmt.Errorf("waiting for the daemon: %w\n%s", ctx.Err(), d.Problems())
		}
	}
}

// Push notifies the daemon that main of a repository moved, as GitHub would, and returns the status of its answer.
func (d *Daemon) Push(ctx context.Context, repository, commit string) (int, error) {
	body, err := json.Marshal(map[string]any{"ref": "refs/heads/main", "after": commit, "repository": map[string]string{"clone_url": repository}})
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Hooks+"/git", bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("calling the webhook: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(d.Key))
	mac.Write(body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", "push")
	r.Header.Set("X-GitHub-Delivery", commit)
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, fmt.Errorf("calling the webhook: %w", err)
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// Stop ends the daemon and waits for its end.
func (d *Daemon) Stop() error {
	_ = d.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(20 * time.Second):
		_ = d.command.Process.Kill()
		<-d.ended
		return fmt.Errorf("stopping the daemon: it did not end\n%s", d.Problems())
	}
	if d.err != nil {
		return fmt.Errorf("stopping the daemon: %w\n%s", d.err, d.Problems())
	}
	return nil
}
