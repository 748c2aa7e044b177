// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/render/isolation"
)

// Name is the name of the program, without the ending that Windows wants.
const Name = "prerig-validate"

// Program is the program at a path.
type Program struct {
	// Command starts the program: its path, and arguments if need be.
	Command []string
	// Confine is the path of prerig-render, which confines the program as it confines itself; "" where it is not installed, or the
	// system is one on which nothing is confined.
	Confine string
	// within is how long all requests of an Ask may take together; 0 for the constant of this name.
	within time.Duration
}

// within is how long all requests of an Ask may take together, of callers without a shorter limit: an object may take 20 seconds, and
// a repository that is not trusted may have thousands that take a little less.
const within = 10 * time.Minute

// namespaces remembers whether the system lets the program have namespaces of its own.
var namespaces isolation.Trials

// Beside returns the program in the directory of another one, such as that of prerig, and whether it exists.
func Beside(executable string) (Program, bool) {
	if real, err := filepath.EvalSymlinks(executable); err == nil {
		executable = real
	}
	path, ok := findProgram(executable, Name)
	if !ok {
		return Program{}, false
	}
	program := Program{Command: []string{path}}
	if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		program.Confine, _ = findProgram(executable, "prerig-render")
	}
	return program, true
}

// findProgram returns the path of a program in the directory of another one, and whether it exists.
func findProgram(executable, name string) (path string, ok bool) {
	path = filepath.Join(filepath.Dir(executable), name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	return path, true
}

// Installed returns the program in the directory of the running one, and whether it exists.
func Installed() (Program, bool) {
	self, err := os.Executable()
	if err != nil {
		return Program{}, false
	}
	return Beside(self)
}

// maxRestarts is how often the program is restarted after it ended at a request.
const maxRestarts = 3

// maxAnswer is how many bytes an answer may have.
const maxAnswer = 16 << 20

// Ask returns the answers to requests, in their order. A request at which the program ends has an answer with an
// Error, and the remaining requests are still sent. Ask returns an error if the program cannot be used at all.
func (p Program) Ask(ctx context.Context, requests []Request) ([]Answer, error) {
	longest := cmp.Or(p.within, within)
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("running %s: all objects together took longer than %s", Name, longest))
	defer cancel()
	out := make([]Answer, 0, len(requests))
	for restarts := 0; len(out) < len(requests); restarts++ {
		answers, err := p.exchangeRequests(ctx, requests[len(out):])
		out = append(out, answers...)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if restarts == maxRestarts || len(answers) == 0 && restarts > 0 || errors.Is(err, errUnusable) {
			return nil, err
		}
		out = append(out, Answer{Error: err.Error()})
	}
	return out, nil
}

// errUnusable is that the program does not start, or speaks another protocol.
var errUnusable = errors.New("the program cannot be used")

// exchangeRequests starts the program for requests, and returns the answers that arrived, with an error if some are
// missing.
func (p Program) exchangeRequests(ctx context.Context, requests []Request) ([]Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started, err := p.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: starting %s: %w", errUnusable, Name, err)
	}
	if err := limitProcess(started.command.Process.Pid); err != nil {
		cancel()
		_ = started.command.Wait()
		return nil, fmt.Errorf("%w: limiting %s: %w", errUnusable, Name, err)
	}
	sent := make(chan error, 1)
	go func() { sent <- errors.Join(writeRequests(started.in, requests), started.in.Close()) }()
	answers, err := readAnswers(started.out, len(requests))
	if err != nil {
		cancel()
	}
	sendErr := <-sent
	waitErr := started.command.Wait()
	if err == nil {
		return answers, nil
	}
	return answers, describeEnd(err, sendErr, waitErr, started.stderr.String())
}

// running is the program as it runs.
type running struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	stderr  *bytes.Buffer
}

// start starts the program, in namespaces where it can have some.
func (p Program) start(ctx context.Context) (started *running, err error) {
	launch := func(apart bool) (err error) {
		started, err = p.launch(ctx, apart)
		return err
	}
	if p.Confine == "" {
		err = launch(false)
		return started, err
	}
	_, err = namespaces.Start(launch)
	return started, err
}

func (p Program) launch(ctx context.Context, apart bool) (*running, error) {
	words := p.Command
	if p.Confine != "" {
		words = slices.Concat([]string{p.Confine, isolation.ConfineArgument}, words)
	}
	r := &running{command: exec.CommandContext(ctx, words[0], words[1:]...), stderr: &bytes.Buffer{}}
	r.command.Env = []string{}
	r.command.Dir = string(filepath.Separator)
	r.command.WaitDelay = time.Second
	r.command.SysProcAttr = isolation.Attributes(apart)
	r.command.Stderr = &limitedBuffer{buffer: r.stderr, left: 16 << 10}
	var err error
	if r.in, err = r.command.StdinPipe(); err != nil {
		return nil, err
	}
	if r.out, err = r.command.StdoutPipe(); err != nil {
		return nil, err
	}
	return r, isolation.Launch(r.command)
}

func describeEnd(err, sendErr, waitErr error, stderr string) error {
	if text := strings.TrimSpace(stderr); text != "" {
		first, _, _ := strings.Cut(text, "\n")
		return fmt.Errorf("running %s: %w: %s", Name, err, first)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("running %s: %w", Name, err)
	}
	return fmt.Errorf("running %s: %w", Name, errors.Join(err, sendErr, waitErr))
}

func writeRequests(to io.Writer, requests []Request) error {
	writer := bufio.NewWriterSize(to, 64<<10)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for i, r := range requests {
		if err := encoder.Encode(message{ID: i, Operation: r.Operation, Object: r.Object, Old: r.Old, Namespace: r.Namespace}); err != nil {
			return fmt.Errorf("sending an object: %w", err)
		}
	}
	return writer.Flush()
}

// readAnswers reads the greeting and the answers to count requests.
func readAnswers(from io.Reader, count int) ([]Answer, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxAnswer)
	next := func(into any) error {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return err
			}
			return io.ErrUnexpectedEOF
		}
		return json.Unmarshal(lines.Bytes(), into)
	}
	var hello greeting
	if err := next(&hello); err != nil {
		return nil, fmt.Errorf("%w: reading its greeting: %w", errUnusable, err)
	}
	if hello.Protocol != protocol {
		return nil, fmt.Errorf("%w: it speaks version %d of the protocol, and prerig version %d: install both from one release", errUnusable, hello.Protocol, protocol)
	}
	var out []Answer
	for len(out) < count {
		var answer Answer
		if err := next(&answer); err != nil {
			return out, err
		}
		out = append(out, answer)
	}
	return out, nil
}

// limitedBuffer keeps the first bytes that are written.
type limitedBuffer struct {
	buffer *bytes.Buffer
	left   int
}

// Write keeps what fits, and never fails.
func (b *limitedBuffer) Write(text []byte) (int, error) {
	n := min(len(text), b.left)
	b.buffer.Write(text[:n])
	b.left -= n
	return len(text), nil
}
