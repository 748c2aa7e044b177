// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// GateRequest asks what an API server refuses of objects.
type GateRequest struct {
	// Options are those of the check. Severities and Catalog of it are not sent, but those below.
	Options gate.Options `json:"options"`
	// Severities are those of rules, by their codes.
	Severities map[string]string `json:"severities,omitempty"`
	// Documents have the objects that are checked, and Catalog has those that the cluster has already.
	Documents []GateDocument `json:"documents,omitempty"`
	Catalog   []GateDocument `json:"catalog,omitempty"`
	// Old has the objects of the documents as they were before.
	Old []GateDocument `json:"old,omitempty"`
	// Limits bound the check of objects that are not the caller's own; nil for none.
	Limits *Limits `json:"-"`
}

// GateDocument is a document with objects.
type GateDocument struct {
	// Path of the file that the document is from.
	Path string `json:"path,omitempty"`
	// Document is what is checked.
	Document SentDocument `json:"document"`
	// Source is the document as the user wrote it, which lines are of; nil where it is the same.
	Source *SentDocument `json:"source,omitempty"`
}

// NewGateDocument returns a document for a check. source is the document as the user wrote it. It returns false for
// an element of a list, which is meaningless without the list.
func NewGateDocument(document, source *manifest.Document, path string) (GateDocument, bool) {
	sent, ok := newSentDocument(document)
	out := GateDocument{Path: path, Document: sent}
	if source != document {
		written, isWhole := newSentDocument(source)
		out.Source, ok = &written, ok && isWhole
	}
	return out, ok
}

// SentDocument is a document with its text.
type SentDocument struct {
	manifest.Stored
	// Content is the text.
	Content []byte `json:"content"`
}

func newSentDocument(document *manifest.Document) (SentDocument, bool) {
	stored, ok := document.Stored()
	return SentDocument{stored, []byte(stored.Text)}, ok
}

// Decode returns the document.
func (d SentDocument) Decode() (*manifest.Document, error) {
	stored := d.Stored
	stored.Text = string(d.Content)
	return stored.Document()
}

// ChartRequest asks for the manifests of a chart.
type ChartRequest struct {
	// Helm is the release. Its chart is a directory or an archive among the files.
	Helm *v1alpha1.Helm `json:"helm"`
	// Fields are what a user calls fields of the release, in messages.
	Fields map[string]string `json:"fields,omitempty"`
}

// Manifest is text that a chart makes: YAML with one document or several.
type Manifest struct {
	// Template is the file that the text is from, beginning with the name of the chart.
	Template string `json:"template"`
	// YAML is the text.
	YAML []byte `json:"yaml"`
}

// ArchiveRequest asks whether the archive of a chart can be used.
type ArchiveRequest struct {
	// Content is the archive.
	Content []byte `json:"content"`
	// Name and Version are those that the chart is to have.
	Name    string `json:"name"`
	Version string `json:"version"`
}

// CheckObjects returns what an API server would reject in the objects of a request, in a renderer of its own. The
// objects of a caller without Limits are its own: the check has no memory or time limits then.
func (p *Pool) CheckObjects(ctx context.Context, request GateRequest) (result.Results, error) {
	var found result.Results
	t := taskOf(frameGate, request)
	t.limits = request.Limits
	err := p.runTask(ctx, t, func(content []byte) error {
		response, err := decodeResponse(content)
		if err == nil {
			found = response.Results
		}
		return err
	})
	return found, err
}

// RenderChart returns the manifests of a chart, as helm template prints them. It has the default limits of a render.
func (p *Pool) RenderChart(ctx context.Context, files tree.Reader, request ChartRequest) ([]Manifest, error) {
	var manifests []Manifest
	t := taskOf(frameChart, request)
	t.files, t.limits = files, defaultTaskLimits()
	err := p.runTask(ctx, t, func(content []byte) error {
		if json.Unmarshal(content, &manifests) != nil {
			return protocolError("manifests that cannot be read")
		}
		return nil
	})
	return manifests, err
}

// CheckArchive returns what is wrong with the archive of a chart that is to have a name and a version.
func (p *Pool) CheckArchive(ctx context.Context, content []byte, name, version string) error {
	t := taskOf(frameArchive, ArchiveRequest{content, name, version})
	t.limits = defaultTaskLimits()
	return p.runTask(ctx, t, func([]byte) error { return nil })
}

func defaultTaskLimits() *Limits {
	limits := DefaultLimits()
	return &limits
}

// sentTask is a task on its way to a renderer.
type sentTask struct {
	kind    byte
	request any
	files   tree.Reader // nil where none is asked for
	limits  *Limits     // nil for none
}

func taskOf(kind byte, request any) sentTask { return sentTask{kind: kind, request: request} }

// runTask runs a task in a renderer of its own, and passes the content of its last message to take.
func (p *Pool) runTask(ctx context.Context, t sentTask, take func(content []byte) error) error {
	bound := Limits{Output: maxFrame}
	if t.limits != nil {
		bound = *t.limits
		timeout := fmt.Errorf("%w: more than %s", ErrTimeout, bound.Timeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, bound.Timeout, timeout)
		defer cancel()
	}
	worker, err := p.takeWarmProcess()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	defer worker.killGroup()
	if t.limits != nil {
		if err := worker.setLimits(bound, false); err != nil {
			return fmt.Errorf("%w: limiting it: %w", ErrStart, err)
		}
	}
	stop := context.AfterFunc(ctx, worker.killGroup)
	defer stop()
	content, err := p.exchangeTask(worker, t, bound.Output)
	switch {
	case err == nil:
		return take(content)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*renderError)):
		return err
	}
	return worker.explainEnd(err, bound)
}

// exchangeTask sends a task, answers questions, and returns the content of the last message.
func (p *Pool) exchangeTask(worker *rendererProcess, t sentTask, output int64) ([]byte, error) {
	text, err := json.Marshal(t.request)
	if err != nil {
		return nil, err
	}
	if err := writeFrame(worker.in, t.kind, text); err != nil {
		return nil, err
	}
	e := &exchange{worker: worker, files: t.files, limit: output, left: output, asking: p.asking, built: &keptBuild{}}
	for {
		kind, content, err := e.readBoundedMessage()
		switch {
		case err != nil:
			return nil, err
		case kind == frameDone || kind == frameResult:
			return content, nil
		case kind == frameQuestion && t.files == nil:
			return nil, protocolError("a question about files that are not there")
		}
		if err := e.handleIntermediateMessage(kind, content); err != nil {
			return nil, err
		}
	}
}
