// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// File is one file of manifests.
type File struct {
	Path string
	Docs []*manifest.Document
	// Clean are the documents without sidecars, one for each; nil where none has a sidecar.
	Clean []*manifest.Document
	// passed has the texts of documents that are no objects.
	passed map[string]bool
}

// Pass leaves a document as it is, and reads no object of it.
func (f *File) Pass(d *manifest.Document) {
	if f.passed == nil {
		f.passed = map[string]bool{}
	}
	f.passed[strings.TrimSpace(d.Text())] = true
}

// isPassed reports whether a document is left as it is.
func (f *File) isPassed(d *manifest.Document) bool {
	return len(f.passed) > 0 && f.passed[strings.TrimSpace(d.Text())]
}

// Options describe what is moved.
type Options struct {
	// Namespaces are the only ones that move; empty means all that have sidecars.
	Namespaces []string
	// DefaultNamespace is that of objects that name none, and RootNamespace Istio's; empty means istio-system.
	DefaultNamespace, RootNamespace string
	// IstioVersion is the control plane's; empty means unknown.
	IstioVersion string
	// Broken are the files that cannot be read in full.
	Broken []string
	// Patches are files that are no objects: kustomizations and their patches. They are not changed.
	Patches []Patch
}

// Patch is a file that changes objects when they are built.
type Patch struct{ Path, Text string }

// object is an object of a file.
type object struct {
	file, doc, element      int // element is -1 where the document is the object itself
	value                   map[string]any
	group, kind, name       string
	namespace               string // the one that it is going to be in
	labels, annotations     map[string]string
	spec                    map[string]any
	templates               []workload.Template
	custom                  []workload.Template // in an object whose controller makes pods with labels of its own
	apiVersion              string
	ownNamespace, isCluster bool
}

func (o *object) String() string {
	if o.namespace == "" || o.isCluster {
		return o.kind + " " + o.name
	}
	return o.kind + " " + o.namespace + "/" + o.name
}

// tree is the files in one state, and the objects in them.
type tree struct {
	options  Options
	files    []File
	objects  []*object
	byKind   map[string][]*object
	of       map[string][]*object    // by namespace
	index    map[[2]string][]*object // by namespace and kind
	registry *workload.Registry
	related  *relations
	// authorizers are those that the objects show, of which some are in the pods of applications.
	authorizers *ambient.Authorizers
	notes       []Note
	pending     []edit
	changed     map[*object]int // the place of the change among the pending ones
	// source is the tree before all steps; nil in that one. Places of findings are those in it.
	source *tree
	// read are the objects of each document, which trees of the same plan share.
	read map[*manifest.Document][]object
}

// edit is one change of a document: a new value for an object, its removal, or objects that come after it.
type edit struct {
	at     *object
	value  map[string]any
	remove bool
	after  []map[string]any
	// like reports whether what comes after is written as the object is, with its comments.
	like bool
}

// readTree decodes the objects. A document that cannot be decoded is an error.
func readTree(files []File, o Options) (*tree, error) { return readAfter(nil, files, o) }

// readAfter decodes the objects after some steps. Documents that the source has, too, are not decoded again.
func readAfter(source *tree, files []File, o Options) (*tree, error) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, fmt.Errorf("preparing to read workloads: %w", err)
	}
	o.RootNamespace = cmp.Or(o.RootNamespace, "istio-system")
	t := &tree{
		options: o, files: files, registry: registry, source: source, read: map[*manifest.Document][]object{},
		byKind: map[string][]*object{}, of: map[string][]*object{}, index: map[[2]string][]*object{}, changed: map[*object]int{},
	}
	if source != nil {
		t.read = source.read
	}
	for i, f := range files {
		for j, d := range f.Docs {
			if f.isPassed(d) {
				continue
			}
			if _, ok := t.read[d]; !ok {
				if err := readDocument(t, d); err != nil {
					return nil, err
				}
			}
			for _, o := range t.read[d] {
				o.file, o.doc = i, j
				t.addObject(&o)
			}
		}
	}
	return t, nil
}

// readDocument decodes the objects of a document.
func readDocument(t *tree, d *manifest.Document) error {
	t.read[d] = nil
	if d.Empty() {
		return nil
	}
	items, isList, err := d.Items()
	if err != nil {
		return fmt.Errorf("reading %s: %w", d, err)
	}
	if !isList {
		items = []*manifest.Document{d}
	}
	for k, item := range items {
		if !isList {
			k = -1
		}
		o, err := newObject(t, item, k)
		if err != nil {
			return fmt.Errorf("reading %s: %w", item, err)
		}
		if o != nil {
			t.read[d] = append(t.read[d], *o)
		}
	}
	return nil
}

// newObject decodes an object; it is nil where the document has none.
func newObject(t *tree, d *manifest.Document, element int) (*object, error) {
	value, err := d.Object()
	if err != nil || value == nil {
		return nil, err
	}
	o := &object{element: element, value: value}
	o.apiVersion = text(value["apiVersion"])
	o.kind = text(value["kind"])
	if group, _, grouped := strings.Cut(o.apiVersion, "/"); grouped {
		o.group = group
	}
	meta := podmap.MapAt(value, "metadata")
	o.name, o.namespace = text(meta["name"]), text(meta["namespace"])
	o.ownNamespace = o.namespace != ""
	o.isCluster = o.kind == "Namespace" || o.kind == "GatewayClass"
	if !o.isCluster {
		o.namespace = cmp.Or(o.namespace, t.options.DefaultNamespace)
	} else if o.kind == "Namespace" {
		o.namespace = o.name
	}
	o.labels, o.annotations = podmap.StringMap(meta["labels"]), podmap.StringMap(meta["annotations"])
	o.spec = podmap.MapAt(value, "spec")
	o.templates, _ = t.registry.Templates(value) // a kind without pods has none
	if _, known := t.registry.Lookup(o.apiVersion, o.kind); !known && workload.MayMakePods(o.apiVersion) && !workload.IsRelease(o.apiVersion, o.kind) {
		o.custom = customTemplates(nil, value, 0)
	}
	return o, nil
}

func (t *tree) addObject(o *object) {
	t.objects = append(t.objects, o)
	t.byKind[o.key()] = append(t.byKind[o.key()], o)
	t.of[o.namespace] = append(t.of[o.namespace], o)
	at := [2]string{o.namespace, o.key()}
	t.index[at] = append(t.index[at], o)
}

// key is the kind with its group, without the version.
func (o *object) key() string {
	if o.group == "" {
		return o.kind
	}
	return o.kind + "." + o.group
}

// The kinds that steps read.
const (
	authorizationPolicies  = "AuthorizationPolicy.security.istio.io"
	requestAuthentications = "RequestAuthentication.security.istio.io"
	wasmPlugins            = "WasmPlugin.extensions.istio.io"
	telemetries            = "Telemetry.telemetry.istio.io"
	virtualServices        = "VirtualService.networking.istio.io"
	destinationRules       = "DestinationRule.networking.istio.io"
	networkPolicies        = "NetworkPolicy.networking.k8s.io"
	kubernetesGateways     = "Gateway.gateway.networking.k8s.io"
	httpRoutes             = "HTTPRoute.gateway.networking.k8s.io"
	canaries               = "Canary.flagger.app"
)

// change sets the value of an object; several changes of one object follow each other.
func (t *tree) change(o *object, value map[string]any) {
	i, ok := t.changed[o]
	if !ok {
		i = len(t.pending)
		t.changed[o] = i
		t.pending = append(t.pending, edit{at: o})
	}
	t.pending[i].value = value
}

// current returns the value of an object with the changes so far.
func (t *tree) current(o *object) map[string]any {
	if i, ok := t.changed[o]; ok {
		return t.pending[i].value
	}
	return o.value
}

func (t *tree) remove(o *object) { t.pending = append(t.pending, edit{at: o, remove: true}) }

// add puts a new object after another.
func (t *tree) add(after *object, value map[string]any) {
	t.pending = append(t.pending, edit{at: after, after: []map[string]any{value}})
}

// addLike puts a new object after another of which it is made. The comments of that one are kept.
func (t *tree) addLike(after *object, value map[string]any) {
	t.pending = append(t.pending, edit{at: after, after: []map[string]any{value}, like: true})
}

// apply returns the files with the pending changes.
func (t *tree) apply() ([]File, error) {
	out := slices.Clone(t.files)
	byDoc := map[[2]int][]edit{}
	edited := map[int]bool{}
	for _, e := range t.pending {
		at := [2]int{e.at.file, e.at.doc}
		byDoc[at] = append(byDoc[at], e)
		edited[e.at.file] = true
	}
	for i, f := range t.files {
		if !edited[i] {
			continue
		}
		var raw bytes.Buffer
		for j, d := range f.Docs {
			edits := byDoc[[2]int{i, j}]
			if len(edits) == 0 {
				raw.WriteString(d.Text())
				continue
			}
			if err := writeEdits(&raw, f.Path, d, edits); err != nil {
				return nil, err
			}
		}
		next, err := manifest.Parse(f.Path, raw.Bytes())
		if err != nil {
			return nil, fmt.Errorf("reading what was written into %s: %w", f.Path, err)
		}
		out[i] = File{Path: f.Path, Docs: next.Docs, Clean: f.cleanFor(next.Docs), passed: f.passed}
	}
	return out, nil
}

// cleanFor returns the documents without sidecars of a file that has changed: those of the documents that are as before.
func (f File) cleanFor(docs []*manifest.Document) []*manifest.Document {
	if len(f.Clean) == 0 {
		return nil
	}
	of := map[string]*manifest.Document{}
	for i, d := range f.Docs {
		of[strings.TrimSpace(d.Text())] = f.Clean[i]
	}
	out := make([]*manifest.Document, len(docs))
	for i, d := range docs {
		out[i] = of[strings.TrimSpace(d.Text())]
	}
	return out
}

// writeEdits writes a document with its changes, and the objects that come after it.
func writeEdits(w *bytes.Buffer, name string, d *manifest.Document, edits []edit) error {
	next, removed, err := editDocument(d, edits)
	if err != nil {
		return fmt.Errorf("changing %s: %w", d, err)
	}
	if !removed {
		w.WriteString(next.Text())
	}
	for _, e := range edits {
		for _, value := range e.after {
			if path.Ext(name) == ".json" {
				return fmt.Errorf("adding %s %s to %s: a file of JSON holds one object", text(value["kind"]), text(podmap.MapAt(value, "metadata")["name"]), name)
			}
			if b := w.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
				w.WriteString("\n")
			}
			w.WriteString(newText(d, e, value))
		}
	}
	return nil
}

// newText is a new object as a document.
func newText(d *manifest.Document, e edit, value map[string]any) string {
	if e.like && e.at.element < 0 {
		if made, err := d.With(value); err == nil { // otherwise it is written as a new object
			out := made.Text()
			if !strings.HasPrefix(out, "---") {
				out = "---\n" + out
			}
			if !strings.HasSuffix(out, "\n") {
				out += "\n"
			}
			return out
		}
	}
	return "---\n" + string(manifest.Marshal(value))
}

func editDocument(d *manifest.Document, edits []edit) (next *manifest.Document, removed bool, err error) {
	items, isList, err := d.Items()
	if err != nil {
		return nil, false, err
	}
	gone := map[int]bool{}
	for _, e := range edits {
		switch {
		case e.remove && !isList:
			removed = true
		case e.remove:
			gone[e.at.element] = true
		case e.value == nil:
		case !isList:
			if d, err = d.With(e.value); err != nil {
				return nil, false, err
			}
		default:
			if items[e.at.element], err = items[e.at.element].With(e.value); err != nil {
				return nil, false, err
			}
		}
	}
	if !isList || removed {
		return d, removed, nil
	}
	var kept []*manifest.Document
	for i, item := range items {
		if !gone[i] {
			kept = append(kept, item)
		}
	}
	d, err = d.WithItems(kept)
	return d, false, err
}

// Bytes returns the content of a file.
func (f File) Bytes() []byte {
	var out bytes.Buffer
	for _, d := range f.Docs {
		out.WriteString(d.Text())
	}
	return out.Bytes()
}
