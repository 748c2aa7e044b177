// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Connection is the renderer's end of the exchange with the process that started it. It is for one goroutine.
type Connection struct {
	in  io.Reader
	out *bufio.Writer
}

// NewConnection returns the connection over the renderer's standard input and output.
func NewConnection(in io.Reader, out io.Writer) *Connection {
	return &Connection{in: in, out: bufio.NewWriterSize(out, 64<<10)}
}

// Task is what a renderer is asked for. One field but Mark is set.
type Task struct {
	// Render is a build, an injection, or both.
	Render *Request
	// Mark ends what is written to standard error during a render, by a renderer that may be used again; "" is for one that is not.
	Mark string
	// Inspect asks for the Isolation of the renderer.
	Inspect bool
	// Gate asks for a check of objects, Chart for the manifests of a chart, and Archive for a check of a chart's archive.
	Gate    *GateRequest
	Admit   *AdmitRequest // asks for the pods that an API server stores
	Mutate  *MutateRequest
	Chart   *ChartRequest
	Archive *ArchiveRequest
}

// Next waits for the next task. The error is io.EOF or another read error if the other process is done, and a
// *RequestError if it sent something unreadable.
func (c *Connection) Next() (*Task, error) {
	kind, content, err := readFrame(c.in, maxFrame)
	if err != nil {
		return nil, err
	}
	task := &Task{}
	switch kind {
	case frameInspect:
		task.Inspect = true
	case frameRequest:
		task.Render, task.Mark, err = decodeRequest(content, c.in)
	case frameGate:
		err = json.Unmarshal(content, &task.Gate)
	case frameAdmit:
		err = json.Unmarshal(content, &task.Admit)
	case frameMutate:
		err = json.Unmarshal(content, &task.Mutate)
	case frameChart:
		err = json.Unmarshal(content, &task.Chart)
	case frameArchive:
		err = json.Unmarshal(content, &task.Archive)
	default:
		return nil, fmt.Errorf("unexpected message %q", kind)
	}
	if err != nil {
		return nil, &RequestError{err}
	}
	return task, nil
}

// RequestError is the error of a request that cannot be read.
type RequestError struct{ cause error }

// Error implements error.
func (e *RequestError) Error() string { return fmt.Sprintf("reading the request: %v", e.cause) }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.cause }

// Files is the tree that the task is about. Each call of its methods asks the other process.
func (c *Connection) Files() tree.Reader { return &remoteTree{c.in, &frameFlusher{c.out}} }

// SendBuilt sends what a build made, so that the other process can keep it.
func (c *Connection) SendBuilt(b *Built) error { return writeBuilt(c.out, b) }

// SendResponse ends a render or a check. again reports that the renderer can be used again.
func (c *Connection) SendResponse(response Response, again bool) error {
	for _, object := range response.Objects {
		head, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if err := writeFrame(c.out, frameObject, append(append(head, '\n'), object.YAML...)); err != nil {
			return err
		}
	}
	text, err := encodeLast(response, again)
	if err != nil {
		return err
	}
	return c.sendFrame(frameDone, text)
}

// SendIsolation answers Task.Inspect.
func (c *Connection) SendIsolation(isolation Isolation) error {
	text, err := json.Marshal(isolation)
	if err != nil {
		return err
	}
	return c.sendFrame(frameInspect, text)
}

// SendManifests answers Task.Chart.
func (c *Connection) SendManifests(manifests []Manifest) error { return c.sendResult(manifests) }

// SendPods answers Task.Admit.
func (c *Connection) SendPods(pods *Admitted) error { return c.sendResult(pods) }

// SendAnswers answers Task.Mutate.
func (c *Connection) SendAnswers(answers []fn.AdmissionAnswer) error { return c.sendResult(answers) }

func (c *Connection) sendResult(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return c.sendFrame(frameResult, text)
}

// SendDone answers a task that has no result but success.
func (c *Connection) SendDone() error { return c.sendFrame(frameResult, nil) }

// SendError ends any task. Only the text of the error is sent.
func (c *Connection) SendError(err error) error { return c.sendFrame(frameError, []byte(err.Error())) }

func (c *Connection) sendFrame(kind byte, content []byte) error {
	if err := writeFrame(c.out, kind, content); err != nil {
		return err
	}
	return c.out.Flush()
}

// frameFlusher sends what was written when the frame is complete.
type frameFlusher struct{ w *bufio.Writer }

// Write implements io.Writer.
func (f *frameFlusher) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = f.w.Flush()
	}
	return n, err
}

// wantsBuilt is the type of notes in the renderer, which accepts none.
type wantsBuilt struct{}

func (wantsBuilt) Begin()                          {}
func (wantsBuilt) Note(tree.Question, tree.Answer) {}
func (wantsBuilt) End()                            {}

// decodeRequest reads what encodeRequest writes, and the build that follows.
func decodeRequest(content []byte, in io.Reader) (request *Request, mark string, err error) {
	var sent sentRequest
	err = json.Unmarshal(content, &sent)
	if sent.Keep {
		sent.Request.Keep = wantsBuilt{}
	}
	if err == nil && sent.Given {
		sent.Request.Given, err = readBuilt(in)
	}
	return &sent.Request, sent.Mark, err
}
