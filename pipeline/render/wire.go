// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"github.com/prerig/prerig/pipeline/render/helmchart/derive"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// The two processes exchange frames: one byte for the kind, four for the length, the content. The renderer gets one
// request, asks for files and gets one answer for each question, and ends with its objects and one last frame.
const (
	frameRequest  = 'R' // to the renderer: Request
	frameAnswer   = 'A' // to the renderer: a status byte and content
	frameQuestion = 'Q' // from the renderer: question
	frameObject   = 'O' // from the renderer: Object, a line break, its YAML
	frameItem     = 'B' // behind the request, or from the renderer: BuiltItem, a line break, its text
	frameBuilt    = 'K' // behind all of these: Response of the build
	frameDone     = 'D' // from the renderer: Response
	frameError    = 'E' // from the renderer: the text of an error
	frameInspect  = 'I' // to the renderer instead of a request, empty; from it: Isolation
)

// maxFrame bounds a frame that the renderer reads; the other direction is bounded by the limits of the request.
const maxFrame = 1 << 30

// Bounds of what a renderer may send beside its result, which the request bounds: what it asks is remembered by this
// process, so that one that was taken over could fill its memory with questions.
const (
	maxQuestion  = 64 << 10
	maxQuestions = 128 << 20 // together
	maxError     = 1 << 20
)

// wireInfo is tree.Info as it goes over the wire. JSON has no way to write a name that is not UTF-8, and puts other
// characters in its place, so that such a name goes as bytes: the renderer is then able to say which one it is.
type wireInfo struct {
	tree.Info
	Bytes []byte `json:"bytes,omitempty"`
}

func toWire(info tree.Info) wireInfo {
	out := wireInfo{Info: info}
	if !utf8.ValidString(info.Path) {
		out.Info.Path, out.Bytes = "", []byte(info.Path)
	}
	return out
}

func (i wireInfo) toInfo() tree.Info {
	if i.Bytes != nil {
		i.Info.Path = string(i.Bytes)
	}
	return i.Info
}

// Status of an answer.
const (
	statusOK = iota
	statusNotExist
	statusRefused
)

func writeFrame(w io.Writer, kind byte, content []byte) error {
	var head [5]byte
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(content)))
	if _, err := w.Write(append(head[:], content...)); err != nil {
		return err
	}
	return nil
}

func readFrame(r io.Reader, max int64) (byte, []byte, error) {
	return readBounded(r, func(byte) int64 { return max })
}

// readBounded reads a frame whose size is bounded by its kind.
func readBounded(r io.Reader, bound func(kind byte) int64) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[1:]))
	if max := bound(head[0]); length > max {
		return head[0], nil, &tree.LimitError{What: fmt.Sprintf("size of a message (%d)", length), Limit: max}
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(r, content); err != nil {
		return 0, nil, fmt.Errorf("message ends early: %w", err)
	}
	return head[0], content, nil
}

// encodeAnswer writes an answer for the renderer.
func encodeAnswer(q tree.Question, a tree.Answer) []byte {
	content, err := a.Content, a.Err
	switch {
	case err != nil:
	case q.Op == tree.OpLookup:
		content, err = json.Marshal(toWire(a.Info))
	case q.Op == tree.OpList:
		wire := make([]wireInfo, 0, len(a.List))
		for _, info := range a.List {
			wire = append(wire, toWire(info))
		}
		content, err = json.Marshal(wire)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return append([]byte{statusNotExist}, err.Error()...)
	case err != nil:
		return append([]byte{statusRefused}, err.Error()...)
	}
	return append([]byte{statusOK}, content...)
}

// remoteTree is the tree as the renderer sees it: every look at it is a question to the other process. It is for one goroutine,
// as kustomize is.
type remoteTree struct {
	in  io.Reader
	out io.Writer
}

// askQuestion refuses names that are not UTF-8. They do no harm in a list, as long as nobody wants to see what is there.
func (a *remoteTree) askQuestion(op tree.Op, name string) ([]byte, error) {
	if !utf8.ValidString(name) {
		return nil, fmt.Errorf("reading %q: the name is not UTF-8; rename it", cleanPath(name))
	}
	text, err := json.Marshal(tree.Question{Op: op, Path: name})
	if err != nil {
		return nil, err
	}
	if err := writeFrame(a.out, frameQuestion, text); err != nil {
		return nil, err
	}
	kind, content, err := readFrame(a.in, maxFrame)
	if err != nil {
		return nil, err
	}
	if kind != frameAnswer || len(content) == 0 {
		return nil, fmt.Errorf("unexpected message %q", kind)
	}
	switch content[0] {
	case statusOK:
		return content[1:], nil
	case statusNotExist:
		return nil, &answeredError{string(content[1:]), fs.ErrNotExist}
	}
	return nil, &answeredError{string(content[1:]), nil}
}

// answeredError is an error of the other process. Its text is complete.
type answeredError struct {
	text  string
	cause error
}

func (e *answeredError) Error() string { return e.text }
func (e *answeredError) Unwrap() error { return e.cause }

// Lookup implements tree.Reader.
func (a *remoteTree) Lookup(name string) (tree.Info, error) {
	content, err := a.askQuestion(tree.OpLookup, name)
	if err != nil {
		return tree.Info{}, err
	}
	var info wireInfo
	err = json.Unmarshal(content, &info)
	return info.toInfo(), err
}

// Read implements tree.Reader.
func (a *remoteTree) Read(name string) ([]byte, error) { return a.askQuestion(tree.OpRead, name) }

// List implements tree.Reader.
func (a *remoteTree) List(name string) ([]tree.Info, error) {
	content, err := a.askQuestion(tree.OpList, name)
	if err != nil {
		return nil, err
	}
	var wire []wireInfo
	if err := json.Unmarshal(content, &wire); err != nil {
		return nil, err
	}
	list := make([]tree.Info, 0, len(wire))
	for _, info := range wire {
		list = append(list, info.toInfo())
	}
	return list, nil
}

// sentRequest is the first frame: a request with what else shows it leaves out.
type sentRequest struct {
	Request
	DerivedKey  []byte `json:"derivedKey,omitempty"`
	ReleasesKey []byte `json:"releasesKey,omitempty"`
	// Given says that a build follows, Keep that one is wanted.
	Given bool `json:"given,omitempty"`
	Keep  bool `json:"keep,omitempty"`
	// Mark ends what is written to standard error, by a renderer that may be used again; "" is for one that is not.
	Mark string `json:"mark,omitempty"`
}

// encodeRequest writes a request.
func encodeRequest(request Request, mark string) ([]byte, error) {
	sent := sentRequest{Request: request, Given: request.Given != nil, Keep: request.Keep != nil, Mark: mark}
	if request.DerivedKey != nil {
		sent.DerivedKey = request.DerivedKey.Bytes()
	}
	if request.ReleasesKey != nil {
		sent.ReleasesKey = request.ReleasesKey.Bytes()
	}
	return json.Marshal(sent)
}

// decodeRequest reads what encodeRequest writes, and the build that follows.
func decodeRequest(content []byte, in io.Reader) (request Request, mark string, err error) {
	var sent sentRequest
	err = json.Unmarshal(content, &sent)
	if err == nil && sent.DerivedKey != nil {
		sent.Request.DerivedKey, err = derive.KeyOf(sent.DerivedKey)
	}
	if err == nil && sent.ReleasesKey != nil {
		sent.Request.ReleasesKey, err = derive.KeyOf(sent.ReleasesKey)
	}
	if sent.Keep {
		sent.Request.Keep = wantsBuilt{}
	}
	if err == nil && sent.Given {
		sent.Request.Given, err = readBuilt(in)
	}
	return sent.Request, sent.Mark, err
}

// sentResponse is the last frame of a render.
type sentResponse struct {
	Response
	// Lines are those of the files of the results, which JSON leaves out.
	Lines []int `json:"lines"`
	// Again says that the renderer can be used again.
	Again bool `json:"again,omitempty"`
}

// encodeResponse writes a response without its objects.
func encodeResponse(response Response) ([]byte, error) { return encodeLast(response, false) }

func encodeLast(response Response, again bool) ([]byte, error) {
	sent := sentResponse{Response: response, Lines: make([]int, len(response.Results)), Again: again}
	for i, one := range response.Results {
		if one.File != nil {
			sent.Lines[i] = one.File.Line
		}
	}
	return json.Marshal(sent)
}

// decodeResponse reads what encodeResponse writes.
func decodeResponse(content []byte) (*Response, error) {
	response, _, err := decodeLast(content)
	return response, err
}

func decodeLast(content []byte) (response *Response, again bool, err error) {
	var sent sentResponse
	if err := json.Unmarshal(content, &sent); err != nil || len(sent.Lines) != len(sent.Results) {
		return nil, false, protocolError("a result that cannot be read")
	}
	for i, line := range sent.Lines {
		if file := sent.Results[i].File; file != nil {
			file.Line = line
		}
	}
	return &sent.Response, sent.Again, nil
}
