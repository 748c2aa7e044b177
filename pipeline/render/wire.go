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
	"path"
	"strings"
	"unicode/utf8"

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
	frameGate     = 'G' // to the renderer instead of a request: GateRequest; it ends with frameDone
	frameAdmit    = 'M' // to the renderer instead of a request: AdmitRequest; it ends with frameResult
	frameMutate   = 'W' // to the renderer instead of a request: MutateRequest; it ends with frameResult
	frameChart    = 'C' // to the renderer instead of a request: ChartRequest; it asks for files, and ends with frameResult
	frameArchive  = 'V' // to the renderer instead of a request: ArchiveRequest; it ends with frameResult
	frameResult   = 'S' // from the renderer: ChartResult, or empty
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

// wireInfo is tree.Info on the wire. JSON cannot represent a name that is not UTF-8, and substitutes other
// characters, so such a name is sent as bytes: the renderer can then name it in its error.
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

// sentRequest is the first frame: a request with the fields that other encodings of it leave out.
type sentRequest struct {
	Request
	// Given reports whether a build follows, Keep whether one is wanted.
	Given bool `json:"given,omitempty"`
	Keep  bool `json:"keep,omitempty"`
	// Mark ends what is written to standard error, by a renderer that may be used again; "" is for one that is not.
	Mark string `json:"mark,omitempty"`
}

// encodeRequest writes a request.
func encodeRequest(request Request, mark string) ([]byte, error) {
	sent := sentRequest{Request: request, Given: request.Given != nil, Keep: request.Keep != nil, Mark: mark}
	return json.Marshal(sent)
}

// sentResponse is the last frame of a render.
type sentResponse struct {
	Response
	// Lines are those of the files of the results, which JSON leaves out.
	Lines []int `json:"lines"`
	// Again reports whether the renderer can be reused.
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

// CleanPath returns a path relative to the root, as files of a tree are named.
func CleanPath(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
