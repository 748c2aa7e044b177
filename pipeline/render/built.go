// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/prerig/prerig/fn/manifest"
)

// Built is what a build gave, before the policies of the pipeline and its gates. It depends on the request without these, and on
// what was asked of the files meanwhile; so it can be kept, and rendered with other policies.
type Built struct {
	// Response holds the build's own messages and the charts it wants. It has no objects.
	Response
	// Items are the documents, in order.
	Items []BuiltItem
}

// BuiltItem is one document of a build.
type BuiltItem struct {
	// Path and Index are where it is from, for messages.
	Path  string `json:"path,omitempty"`
	Index int    `json:"index,omitempty"`
	// Unit is that of render.Object.
	Unit string `json:"unit,omitempty"`
	// Document is its text and place.
	Document manifest.Stored `json:"document"`
}

// WithoutInjection returns the request of a build: without what is done with its result.
func (r Request) WithoutInjection() Request {
	r.Policies, r.Schemas, r.Admission, r.Given, r.Keep = nil, nil, nil, nil, nil
	return r
}

// Gated reports whether a gate looks at the result.
func (r Request) Gated() bool { return r.Schemas != nil || r.Admission != nil }

// Encode writes what a build gave, as Decode reads it.
func (b *Built) Encode() ([]byte, error) {
	var out bytes.Buffer
	if err := writeBuilt(&out, b); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// DecodeBuilt reads what Encode has written.
func DecodeBuilt(content []byte) (*Built, error) {
	in := bytes.NewReader(content)
	built, err := readBuilt(in)
	if err == nil && in.Len() > 0 {
		err = errors.New("there is more than one build")
	}
	return built, err
}

// writeBuilt writes the documents, followed by the messages.
func writeBuilt(out io.Writer, b *Built) error {
	for _, item := range b.Items {
		head, err := json.Marshal(item)
		if err != nil {
			return err
		}
		if err := writeFrame(out, frameItem, append(append(head, '\n'), item.Document.Text...)); err != nil {
			return err
		}
	}
	text, err := encodeResponse(b.Response)
	if err != nil {
		return err
	}
	return writeFrame(out, frameBuilt, text)
}

// readBuilt reads what writeBuilt has written.
func readBuilt(in io.Reader) (*Built, error) {
	b := &Built{}
	for {
		kind, content, err := readFrame(in, maxFrame)
		if err != nil {
			return nil, fmt.Errorf("reading a build: %w", err)
		}
		if done, err := b.addBuildFrame(kind, content); done || err != nil {
			return b, err
		}
	}
}

// addBuildFrame adds one frame of a build and reports whether it was the last.
func (b *Built) addBuildFrame(kind byte, content []byte) (done bool, err error) {
	switch kind {
	case frameItem:
		head, text, found := bytes.Cut(content, []byte("\n"))
		var item BuiltItem
		if err := json.Unmarshal(head, &item); err != nil || !found {
			return false, protocolError("a document without a place")
		}
		item.Document.Text = string(text)
		b.Items = append(b.Items, item)
		return false, nil
	case frameBuilt:
		response, err := decodeResponse(content)
		if err != nil {
			return false, err
		}
		b.Response = *response
		return true, nil
	}
	return false, protocolError(fmt.Sprintf("a message of kind %q", kind))
}

// adoptBuild stores the warnings with the build that was kept, if any, and prepends the messages of the build that
// was passed in.
func (r *Response) adoptBuild(given *Built) {
	if r.Built != nil {
		r.Built.Warnings = r.Warnings
	}
	if given != nil {
		r.Results = append(slices.Clip(given.Results), r.Results...)
		r.Decisions = append(slices.Clip(given.Decisions), r.Decisions...)
		r.FollowJobs = r.FollowJobs || given.FollowJobs
		r.Failed, r.Units = given.Failed, given.Units
		r.Warnings = append(slices.Clip(given.Warnings), r.Warnings...)
	}
}

// keptBuild collects the build that a renderer sends.
type keptBuild struct {
	building, finished *Built
	left               int64
	notes              Notes // nil where none is wanted
}

func (k *keptBuild) receiveBuildFrame(kind byte, content []byte) error {
	if k.left -= max(leastObject, int64(len(content))); k.left < 0 || k.notes == nil || k.finished != nil {
		return protocolError("a build that was not requested")
	}
	if k.building == nil {
		k.building = &Built{}
	}
	done, err := k.building.addBuildFrame(kind, content)
	if done {
		k.finished = k.building
		k.notes.End()
	}
	return err
}

// Finished returns the response that a build already amounts to: a build that wants charts has no objects to inject
// into.
func (b *Built) Finished() (*Response, bool) {
	if !b.IsWanting() {
		return nil, false
	}
	response := b.Response
	return &response, true
}
