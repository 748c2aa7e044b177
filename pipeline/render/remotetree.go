// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// remoteTree is the tree as the renderer sees it: every look at it is a question to the other process. It is for one goroutine,
// as kustomize is.
type remoteTree struct {
	in  io.Reader
	out io.Writer
}

// askQuestion rejects names that are not UTF-8. They are harmless in a listing as long as no reader asks for their
// content.
func (a *remoteTree) askQuestion(op tree.Op, name string) ([]byte, error) {
	if !utf8.ValidString(name) {
		return nil, fmt.Errorf("reading %q: the name is not UTF-8; rename it", CleanPath(name))
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
