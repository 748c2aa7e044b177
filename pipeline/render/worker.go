// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"time"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Command is the hidden sub-command that runs Main.
const Command = "render-worker"

// Main is the renderer: it takes a request from in, asks for files and writes objects to out, and so on with the next one as long as
// each leaves the process as it was. It returns the exit status. The program calls it for the sub-command Command, as early as it
// can. It must be the only thing that the process does.
func Main(in io.Reader, out io.Writer) int {
	isolation := isolateProcess(allLayers)
	debug.SetGCPercent(collectAt)
	quietLibraries()
	noticeWarnings()
	buffered := bufio.NewWriterSize(out, 64<<10)
	flushing := &frameFlusher{buffered}
	policies := &policyCache{}
	for used := false; ; used = true {
		kind, content, err := readFrame(in, maxFrame)
		if err == nil && kind == frameInspect {
			return reportIsolation(flushing, isolation)
		}
		if err != nil || kind != frameRequest {
			return 1 // nobody wants anything
		}
		request, mark, err := decodeRequest(content, in)
		if err != nil {
			return writeFailure(flushing, fmt.Errorf("reading the request: %w", err))
		}
		debug.SetMemoryLimit(request.Limits.Memory * 8 / 10)
		w := &renderWorker{
			request: request, files: &remoteTree{in, flushing}, out: buffered, marked: map[string]string{}, compiled: policies, used: used,
		}
		if err := w.runSafely(); err != nil {
			return writeFailure(flushing, err)
		}
		again := mark != "" && w.leavesNothing()
		if again {
			_, _ = os.Stderr.WriteString(mark)
			debug.SetGCPercent(200) // what goes on is worth collecting
		}
		if w.sendResponse(flushing, again) != nil || !again {
			return 0
		}
	}
}

// reportIsolation answers what the renderer is kept from, for those who want to know before they trust it with anything.
func reportIsolation(out io.Writer, isolation Isolation) int {
	text, err := json.Marshal(isolation)
	if err != nil || writeFrame(out, frameInspect, text) != nil {
		return 1
	}
	return 0
}

// frameFlusher sends what was written when the frame is complete.
type frameFlusher struct{ w *bufio.Writer }

func (f *frameFlusher) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = f.w.Flush()
	}
	return n, err
}

func writeFailure(out io.Writer, err error) int {
	_ = writeFrame(out, frameError, []byte(err.Error()))
	return 1
}

// renderWorker is one render.
type renderWorker struct {
	request  Request
	files    tree.Reader
	out      io.Writer
	response Response
	compiled *policyCache
	used     bool              // the process has rendered before
	schema   bool              // a kustomization names a schema, which kustomize keeps
	secret   bool              // what was built holds a Secret or a credential
	marked   map[string]string // kinds and names of functions to their own apiVersion
	layers   func([]byte) []byte
	written  *writtenObjects // with releases or the gate
	built    builtDocs       // with the gate
}

// runSafely turns a panic of a library into an error, as kustomize has some for odd input.
func (w *renderWorker) runSafely() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("building: the library gave up: %v", r)
		}
	}()
	return w.runRender(context.Background())
}

func (w *renderWorker) sendResponse(out *frameFlusher, again bool) error {
	for _, object := range w.response.Objects {
		head, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if err := writeFrame(out.w, frameObject, append(append(head, '\n'), object.YAML...)); err != nil {
			return err
		}
	}
	text, err := encodeLast(w.response, again)
	if err != nil {
		return err
	}
	return writeFrame(out, frameDone, text)
}

func (w *renderWorker) runRender(ctx context.Context) error {
	items, err := w.buildOrTake(ctx)
	if err != nil {
		return err
	}
	if len(w.response.Wanted) > 0 || w.request.Discover {
		return nil // it is rendered again, with what is wanted
	}
	policies, err := w.parsePolicies()
	if err != nil {
		return err
	}
	w.rememberBuilt(items)
	if items, err = w.applyPolicies(ctx, policies, items); err != nil {
		return err
	}
	if err := w.checkSchema(items, policies.policies); err != nil {
		return err
	}
	if err := w.checkGate(ctx, items); err != nil {
		return err
	}
	return w.addObjects(items)
}

// buildOrTake returns the documents to inject into.
func (w *renderWorker) buildOrTake(ctx context.Context) ([]fn.Item, error) {
	if w.request.Given != nil {
		return w.takeGiven()
	}
	items, err := w.buildItems(ctx)
	if err == nil {
		err = w.checkUnused()
	}
	if err != nil || w.request.Discover {
		return nil, err
	}
	if len(w.response.Wanted) > 0 {
		return nil, w.sendBuilt(nil)
	}
	if err := w.findCredentials(items); err != nil {
		return nil, err
	}
	return items, w.sendBuilt(items)
}

// buildItems builds.
func (w *renderWorker) buildItems(ctx context.Context) ([]fn.Item, error) {
	err := w.checkBuildPath()
	if err != nil {
		return nil, err
	}
	if w.response.Type, err = w.detectBuildType(); err != nil {
		return nil, err
	}
	pointers := &pointerReader{Reader: w.files}
	w.files = pointers
	w.rememberFiles()
	start := time.Now()
	var items []fn.Item
	switch w.response.Type {
	case v1alpha1.BuildKustomize:
		items, err = w.renderKustomize(ctx, w.request.Path)
	case v1alpha1.BuildKpt:
		items, err = w.renderKpt(ctx)
	case v1alpha1.BuildHelm:
		items, err = w.renderHelm(ctx)
	default:
		items, err = w.renderPlain()
	}
	switch {
	case err != nil && w.response.Type == v1alpha1.BuildHelm:
		return nil, pointers.explain(err) // it names the chart
	case err != nil:
		return nil, fmt.Errorf("building %s: %w", w.request.Path, pointers.explain(err))
	}
	if items, err = w.renderReleases(ctx, items); err != nil {
		return nil, fmt.Errorf("building %s: %w", w.request.Path, pointers.explain(err))
	}
	w.response.Build = time.Since(start) - w.response.Inject
	return items, nil
}

// checkBuildPath looks for the directory that is built. A chart has a path of its own.
func (w *renderWorker) checkBuildPath() error {
	if w.request.Type == v1alpha1.BuildHelm {
		return nil
	}
	info, err := w.files.Lookup(w.request.Path)
	if err != nil {
		return fmt.Errorf("spec.build.path: %w", err)
	}
	if !info.Dir {
		return fmt.Errorf("spec.build.path: %s is not a directory", w.request.Path)
	}
	return nil
}

// detectBuildType finds out how to build.
func (w *renderWorker) detectBuildType() (v1alpha1.BuildType, error) {
	if w.request.Type != v1alpha1.BuildAuto && w.request.Type != "" {
		return w.request.Type, nil
	}
	for _, name := range append(konfig.RecognizedKustomizationFileNames(), kptfileName) {
		_, err := w.files.Lookup(path.Join(w.request.Path, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", err
		case name == kptfileName:
			return v1alpha1.BuildKpt, nil
		default:
			return v1alpha1.BuildKustomize, nil
		}
	}
	return v1alpha1.BuildPlain, nil
}

// addObjects takes the documents apart into objects, lists included.
func (w *renderWorker) addObjects(items []fn.Item) error {
	for _, item := range items {
		if err := w.addObject(item.Doc, false); err != nil {
			return err
		}
	}
	return nil
}

func (w *renderWorker) addObject(doc *manifest.Document, inList bool) error {
	if doc.Empty() {
		return nil
	}
	var value map[string]any
	var err error
	meta, ok := doc.Peek()
	if !ok || inList {
		if value, err = doc.Object(); err != nil {
			return fmt.Errorf("reading %s: %w", doc, err)
		}
		meta = metaOf(value)
	}
	if meta.APIVersion == "" || meta.Kind == "" {
		return fmt.Errorf("reading %s: an object needs apiVersion and kind", doc)
	}
	elements, isList, err := doc.Items()
	if err != nil {
		return fmt.Errorf("reading %s: %w", doc, err)
	}
	if isList {
		for _, element := range elements {
			if err := w.addObject(element, true); err != nil {
				return err
			}
		}
		return nil
	}
	text := doc.Raw()
	if inList {
		if forCluster, err := w.forCluster(doc); w.response.Type == v1alpha1.BuildPlain && (err != nil || !forCluster) {
			return err
		}
		text = standaloneDocument(value, text)
	}
	w.response.Objects = append(w.response.Objects, Object{
		APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Namespace, Name: meta.Name, YAML: text,
	})
	return nil
}

func metaOf(object map[string]any) manifest.Meta {
	var meta manifest.Meta
	meta.APIVersion, _ = object["apiVersion"].(string)
	meta.Kind, _ = object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	meta.Name, _ = metadata["name"].(string)
	meta.Namespace, _ = metadata["namespace"].(string)
	return meta
}
