// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import "fmt"

// Question is one call of a Reader.
type Question struct {
	Op   Op     `json:"op"`
	Path string `json:"path"`
}

// Answer is what a Reader returns to a Question: Info, Content or List by its Op, or Err. Without an error, Content and
// List are not nil.
type Answer struct {
	Info    Info
	Content []byte
	List    []Info
	Err     error
}

// Ask asks a reader.
func (q Question) Ask(r Reader) (a Answer) {
	switch q.Op {
	case OpLookup:
		a.Info, a.Err = r.Lookup(q.Path)
	case OpRead:
		if a.Content, a.Err = r.Read(q.Path); a.Content == nil && a.Err == nil {
			a.Content = []byte{}
		}
	case OpList:
		if a.List, a.Err = r.List(q.Path); a.List == nil && a.Err == nil {
			a.List = []Info{}
		}
	default:
		a.Err = fmt.Errorf("unknown question %q", q.Op)
	}
	return a
}

// Answering is a Reader that answers all questions in one place.
type Answering func(Question) Answer

// Lookup implements Reader.
func (f Answering) Lookup(name string) (Info, error) {
	a := f(Question{OpLookup, name})
	return a.Info, a.Err
}

// Read implements Reader.
func (f Answering) Read(name string) ([]byte, error) {
	a := f(Question{OpRead, name})
	return a.Content, a.Err
}

// List implements Reader.
func (f Answering) List(name string) ([]Info, error) {
	a := f(Question{OpList, name})
	return a.List, a.Err
}
