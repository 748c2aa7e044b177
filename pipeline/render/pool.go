// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/render/isolation"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Options of a Pool.
type Options struct {
	// Command starts a renderer: a program and arguments. The default is the Program beside this one.
	Command []string
	// Warm is how many renderers are kept ready. Each is used once; none makes a render wait for its process to start.
	Warm int
	// NoSandbox starts renderers without namespaces of their own, for tests.
	NoSandbox bool
	// Namespaces is called when renderers lose their own namespaces, with the reason, and when they have them
	// again. It must be quick; it may be nil.
	Namespaces func(have bool, err error)
}

// Pool starts renderers. It is safe for concurrent use; the caller limits the number of concurrent renders.
type Pool struct {
	options Options
	asking  int // bytes of questions that one render may ask
	wanted  chan struct{}
	warm    chan *rendererProcess
	done    chan struct{}
	stop    sync.Once
	running sync.WaitGroup

	sessions     sessionPool
	namespaces   isolation.Trials
	identified   sync.Once
	identity     string
	unidentified error
}

// NewPool returns a pool. Close ends it. The error is an ErrNoRenderer where the renderer is not beside this program.
func NewPool(options Options) (*Pool, error) {
	if len(options.Command) == 0 {
		var err error
		if options.Command, err = defaultCommand(); err != nil {
			return nil, err
		}
	}
	closeFilesOnExec()
	p := &Pool{sessions: sessionPool{most: max(2, options.Warm), patience: sessionIdle, room: sessionMemory, stepBack: stepBackAfter}, options: options, asking: maxQuestions,
		namespaces: isolation.Trials{Told: options.Namespaces},
		warm:       make(chan *rendererProcess, options.Warm), wanted: make(chan struct{}, options.Warm), done: make(chan struct{})}
	for range options.Warm {
		p.wanted <- struct{}{}
	}
	if options.Warm > 0 {
		p.running.Go(p.refillWarm)
	}
	return p, nil
}

// refillWarm starts a renderer for each that was taken.
func (p *Pool) refillWarm() {
	for {
		select {
		case <-p.done:
			return
		case <-p.wanted:
		}
		started, err := p.startRenderer()
		if err != nil {
			// The next render starts its own and reports what is wrong.
			continue
		}
		select {
		case p.warm <- started:
		case <-p.done:
			started.killGroup()
			return
		}
	}
}

// Close ends renderers that wait for work. Renders that run are not touched.
func (p *Pool) Close() {
	p.stop.Do(func() { close(p.done) })
	p.running.Wait()
	p.sessions.close()
	for {
		select {
		case waiting := <-p.warm:
			waiting.killGroup()
		default:
			return
		}
	}
}

func (p *Pool) takeWarmProcess() (*rendererProcess, error) {
	for {
		select {
		case ready := <-p.warm:
			select {
			case p.wanted <- struct{}{}:
			default:
			}
			if ready.isAlive() {
				return ready, nil
			}
			ready.killGroup()
		default:
			return p.startRenderer()
		}
	}
}

// inspectTimeout is generous: it is the first renderer that starts.
const inspectTimeout = 30 * time.Second

// Isolation starts a renderer to see what keeps it from this machine.
func (p *Pool) Isolation(ctx context.Context) (Isolation, error) {
	var found Isolation
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	worker, err := p.takeWarmProcess()
	if err != nil {
		return found, fmt.Errorf("%w: %w", ErrStart, err)
	}
	defer worker.killGroup()
	stop := context.AfterFunc(ctx, worker.killGroup)
	defer stop()
	if err := writeFrame(worker.in, frameInspect, nil); err != nil {
		return found, fmt.Errorf("asking the renderer what it is kept from: %w", err)
	}
	kind, content, err := readFrame(worker.out, maxQuestion)
	if err == nil && kind != frameInspect {
		err = protocolError(fmt.Sprintf("a message of kind %q", kind))
	}
	if err == nil {
		err = json.Unmarshal(content, &found)
	}
	if err != nil {
		return Isolation{}, fmt.Errorf("asking the renderer what it is kept from: %w", err)
	}
	found.Namespaces = worker.apart
	return found, nil
}

var (
	// ErrTimeout is the cause of the error of a render that took too long.
	ErrTimeout = errors.New("the render took too long")
	// ErrEnded is the cause of the error of a render whose renderer was killed, or ended by itself without saying why.
	ErrEnded = errors.New("the renderer ended without a result")
	// ErrStart is the cause of a render error if no renderer could be started. The cause is always the machine,
	// never the source.
	ErrStart = errors.New("starting the renderer")
)

// IsUnfinished reports whether an error leaves open what the render would have come to: the same may well go better another time.
func IsUnfinished(err error) bool {
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrEnded) || errors.Is(err, ErrStart)
}

// stepBackAfter is when a render counts as a long one, behind which no other is to wait.
const stepBackAfter = 3 * time.Second

// Render renders in a process of its own, or in one that has rendered for the same trust and was left unchanged.
// This process reads the files from the reader; pass a tree.View and use its record afterwards, even if the render
// fails.
func (p *Pool) Render(ctx context.Context, files tree.Reader, request Request) (*Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, request.Limits.Timeout, fmt.Errorf("%w: more than %s", ErrTimeout, request.Limits.Timeout))
	defer cancel()
	if request.Trust != "" {
		again := cacheReaderAnswers(files)
		response, done, err := p.renderAgain(ctx, again, request)
		if done {
			return response, err
		}
		files = again
	}
	worker, err := p.takeWarmProcess()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	return p.renderIn(ctx, worker, files, request)
}

// renderIn renders in a process, and ends it or keeps it.
func (p *Pool) renderIn(ctx context.Context, worker *rendererProcess, files tree.Reader, request Request) (*Response, error) {
	kept := false
	defer func() {
		if !kept {
			worker.killGroup()
		}
	}()
	mark := ""
	if request.Trust != "" {
		mark = newMark()
	}
	if err := worker.setLimits(request.Limits, mark != ""); err != nil {
		return nil, fmt.Errorf("%w: limiting it: %w", ErrStart, err)
	}
	stop := context.AfterFunc(ctx, worker.killGroup)
	defer stop()
	long := time.AfterFunc(p.sessions.stepBack, worker.lowerPriority)
	defer long.Stop()
	response, again, err := serveRequest(worker, files, request, mark, p.asking)
	if err == nil {
		text, whole := "", false
		if again && mark != "" {
			text, whole = worker.stderr.takeUntil(mark, markTimeout)
		}
		// A renderer that took long has lowered its priority for good.
		if whole && long.Stop() && stop() && worker.canGoOn(p.sessions.room) {
			kept = true
			p.sessions.keepIdleRenderer(sessionKey(request), worker)
		} else if worker.killGroup(); !whole {
			text = worker.stderr.String() // it has finished; its output is complete now
		}
		if text = strings.TrimSpace(text); text != "" {
			response.Warnings = append(response.Warnings, strings.Split(strings.ToValidUTF8(text, "?"), "\n")...)
		}
		response.adoptBuild(request.Given)
		return response, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var told *renderError
	if errors.As(err, &told) {
		return nil, err
	}
	return nil, worker.explainEnd(err, request.Limits)
}

// renderError is an error reported by the renderer.
type renderError struct{ text string }

func (e *renderError) Error() string { return e.text }

// serveRequest sends the request and answers questions until the result arrives.
func serveRequest(worker *rendererProcess, files tree.Reader, request Request, mark string, asking int) (response *Response, again bool, err error) {
	if err := sendRequest(worker, request, mark); err != nil {
		return nil, false, err
	}
	e := &exchange{
		worker: worker, files: files, limit: request.Limits.Output, left: request.Limits.Output, asking: asking,
		built: &keptBuild{left: 2 * request.Limits.Output, notes: request.Keep},
	}
	if request.Keep != nil {
		request.Keep.Begin()
	}
	for {
		kind, content, err := e.readBoundedMessage()
		if err != nil {
			return nil, false, err
		}
		if kind != frameDone {
			if err := e.handleIntermediateMessage(kind, content); err != nil {
				return nil, false, err
			}
			continue
		}
		response, again, err := decodeLast(content)
		if err != nil {
			return nil, false, err
		}
		response.Objects, response.Built = e.objects, e.built.finished
		return response, again, nil
	}
}

// sendRequest sends a request, followed by its build if it has one.
func sendRequest(worker *rendererProcess, request Request, mark string) error {
	text, err := encodeRequest(request, mark)
	if err != nil {
		return err
	}
	if err := writeFrame(worker.in, frameRequest, text); err != nil || request.Given == nil {
		return err
	}
	return writeBuilt(worker.in, &Built{Response: Response{Type: request.Given.Type}, Items: request.Given.Items})
}

// exchange is the communication with a renderer while it processes a request.
type exchange struct {
	worker  *rendererProcess
	files   tree.Reader
	limit   int64 // of the objects, in bytes
	left    int64 // of limit
	asking  int   // how long all questions may be, in bytes
	objects []Object
	built   *keptBuild
}

// readBoundedMessage reads the next message. One that is longer than it may be is not read.
func (e *exchange) readBoundedMessage() (kind byte, content []byte, err error) {
	kind, content, err = readBounded(e.worker.out, func(kind byte) int64 {
		switch kind {
		case frameQuestion:
			return maxQuestion
		case frameError:
			return maxError
		}
		return e.left
	})
	var limit *tree.LimitError
	switch {
	case errors.As(err, &limit) && (kind == frameObject || kind == frameDone || kind == frameResult):
		return kind, nil, &tree.LimitError{What: "size of the result in bytes", Limit: e.limit}
	case errors.As(err, &limit):
		return kind, nil, protocolError(fmt.Sprintf("a message of kind %q that is too long", kind))
	case err == nil:
		err = checkElements(kind, content)
	}
	return kind, content, err
}

// checkElements refuses a message whose lists have so many elements that their bytes are a small part of the memory that they take here:
// three bytes of an empty element become hundreds. Those of real messages are longer.
func checkElements(kind byte, content []byte) error {
	least := map[byte]int{frameDone: 64, frameBuilt: 64, frameObject: 64, frameItem: 64, frameResult: 16}[kind]
	if least == 0 {
		return nil
	}
	if kind == frameObject || kind == frameItem {
		content, _, _ = bytes.Cut(content, []byte("\n")) // what follows is no list
	}
	const always = 10_000
	if budget.CheckElements(content, always+len(content)/least) != nil {
		return protocolError(fmt.Sprintf("a message of kind %q with lists of empty elements", kind))
	}
	return nil
}

// leastObject and leastQuestion are the sizes in bytes that shorter ones count with: each takes some hundred bytes here.
const leastObject, leastQuestion = 64, 128

// handleIntermediateMessage handles a message that is not the last one: it answers a question, and keeps parts of the
// result.
func (e *exchange) handleIntermediateMessage(kind byte, content []byte) error {
	switch kind {
	case frameQuestion:
		if e.asking -= max(leastQuestion, len(content)); e.asking < 0 {
			return protocolError("questions without an end")
		}
		var q tree.Question
		if err := json.Unmarshal(content, &q); err != nil || !fs.ValidPath(CleanPath(q.Path)) && CleanPath(q.Path) != "" {
			return protocolError("a question that makes no sense")
		}
		a := q.Ask(e.files)
		if e.built.notes != nil {
			e.built.notes.Note(q, a)
		}
		return writeFrame(e.worker.in, frameAnswer, encodeAnswer(q, a))
	case frameObject:
		object, err := decodeObject(content)
		if err != nil {
			return err
		}
		e.objects = append(e.objects, object)
		e.left -= max(leastObject, int64(len(content)))
		return nil
	case frameItem, frameBuilt:
		return e.built.receiveBuildFrame(kind, content)
	case frameError:
		return &renderError{string(content)}
	}
	return protocolError(fmt.Sprintf("a message of kind %q", kind))
}

func decodeObject(content []byte) (Object, error) {
	head, text, found := bytes.Cut(content, []byte("\n"))
	var object Object
	if err := json.Unmarshal(head, &object); err != nil || !found || object.Kind == "" || object.APIVersion == "" {
		return object, protocolError("an object without an identity")
	}
	object.YAML = text
	return object, nil
}

func protocolError(what string) error { return fmt.Errorf("the renderer sent %s", what) }
