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
	"net/http"
	"os"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
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
	buffered := bufio.NewWriterSize(out, 64<<10)
	flushing := &frameFlusher{buffered}
	policies := &policyCache{}
	for {
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
			request: request, files: &remoteTree{in, flushing}, out: buffered, marked: map[string]string{}, compiled: policies,
		}
		if err := w.runSafely(); err != nil {
			return writeFailure(flushing, err)
		}
		again := mark != "" && w.leavesNothing()
		if again {
			_, _ = os.Stderr.WriteString(mark)
			debug.SetGCPercent(100) // what goes on is worth collecting
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
		return fmt.Errorf("looking for the build path: %w", err)
	}
	if !info.Dir {
		return fmt.Errorf("looking for the build path: %s is not a directory", w.request.Path)
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

// noNetwork stands for every connection that a library would open.
type noNetwork struct{}

// RoundTrip implements http.RoundTripper.
func (noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("loading %s: a render uses no network", withoutCredentials(r.URL.String()))
}

// renderKustomize builds as the kustomize command does by default, with all plugins disabled.
func (w *renderWorker) renderKustomize(ctx context.Context, at string) ([]fn.Item, error) {
	if err := installTransformer(newFunction(ctx, w)); err != nil {
		return nil, err
	}
	files := newKustomizations(w.files, w.request.Bases)
	files.sources = w.request.Sources
	// Keys are written in many ways; so it counts, too, what kustomize made of them.
	defer func() { w.schema = w.schema || files.schema || schemaIsSet() }()
	if err := installHelmGenerator(func() resmap.GeneratorPlugin { return &helmGenerator{ctx: ctx, worker: w, places: files.charts} }); err != nil {
		return nil, err
	}
	w.layers = files.restoreNames
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	options.PluginConfig = types.DisabledPluginConfig()
	objects, err := krusty.MakeKustomizer(options).Run(tree.FileSystem(files), path.Join("/", at))
	if files.refused != nil {
		return nil, errors.New(string(files.restoreNames([]byte(files.refused.Error()))))
	}
	if err != nil {
		return nil, files.explainError(err)
	}
	var items []fn.Item
	for i, object := range objects.Resources() {
		if err := errors.Join(files.restoreOrigins(object), w.unmarkOrigin(object)); err != nil {
			return nil, err
		}
		text, err := object.AsYAML()
		if err != nil {
			return nil, err
		}
		file, err := manifest.Parse("", files.restoreNames(text))
		if err != nil {
			return nil, err
		}
		for _, doc := range file.Docs {
			items = append(items, fn.Item{Doc: doc, Index: i})
		}
	}
	return items, nil
}

// runInjector runs an injector and keeps what it has to say. Errors among the results are an error.
func (w *renderWorker) runInjector(ctx context.Context, injector *fn.Injector, items []fn.Item, layer string) (*fn.Report, error) {
	start := time.Now()
	defer func() { w.response.Inject += time.Since(start) }()
	report, err := injector.Run(ctx, items)
	if err != nil {
		return nil, err
	}
	w.response.Results = append(w.response.Results, report.Results...)
	for _, o := range report.Outcomes {
		w.response.Decisions = append(w.response.Decisions, Decision{
			Object: o.Ref, Action: string(o.Action), Changed: o.Changed, Reason: o.Reason, Policy: o.Policy, Version: o.Version, Layer: layer,
		})
	}
	if report.Failed() {
		return nil, resultsError("injecting", report.Results)
	}
	return report, nil
}

// resultsError is the first few errors among results.
func resultsError(doing string, results result.Results) error {
	const show = 5
	var errs []error
	count := 0
	for _, r := range results {
		if r.Severity != result.Error {
			continue
		}
		if count++; count <= show {
			errs = append(errs, errors.New(r.String()))
		}
	}
	if count > show {
		errs = append(errs, fmt.Errorf("and %d more errors", count-show))
	}
	return fmt.Errorf("%s: %w", doing, errors.Join(errs...))
}

// parsePolicies reads the policies of the pipeline.
func (w *renderWorker) parsePolicies() (*compiledPolicies, error) {
	var text strings.Builder
	for _, policy := range w.request.Policies {
		fmt.Fprintf(&text, "%d %s %d %s\n", len(policy.Origin), policy.Origin, len(policy.YAML), policy.YAML)
	}
	return w.compiled.get(text.String(), func() (all []*policyv1alpha1.InjectionPolicy, err error) {
		for _, policy := range w.request.Policies {
			parsed, err := policyv1alpha1.Parse([]byte(policy.YAML))
			if err != nil {
				return nil, fmt.Errorf("reading the policy %s: %w", policy.Origin, err)
			}
			all = append(all, parsed)
		}
		return all, nil
	})
}

// applyPolicies applies those of the pipeline to the result of the build.
func (w *renderWorker) applyPolicies(ctx context.Context, policies *compiledPolicies, items []fn.Item) ([]fn.Item, error) {
	if len(policies.policies) == 0 {
		return items, nil
	}
	injector, err := policies.compiled()
	if err != nil {
		return nil, err
	}
	report, err := w.runInjector(ctx, injector, items, "")
	if err != nil {
		return nil, err
	}
	for _, doc := range report.Added {
		report.Items = append(report.Items, fn.Item{Doc: doc})
	}
	return report.Items, nil
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
