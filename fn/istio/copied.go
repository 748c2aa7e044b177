// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// What templates can read of a workload, as [Reads] names it. A single label is ReadLabel and its key.
const (
	ReadName        = "name"
	ReadNamespace   = "namespace"
	ReadLabels      = "labels"
	ReadLabel       = "label:"
	ReadAnnotations = "annotations"
	ReadAccount     = "account"
	ReadContainer   = "container"
	ReadImage       = "image"
	ReadVariables   = "env"
	ReadArguments   = "args"
	ReadCommand     = "command"
	ReadResources   = "resources"
	ReadVolumes     = "volumes"
)

// Reads is what the templates that pods get by themselves do with the names in a workload.
type Reads struct {
	read     map[string]bool
	compared map[string]bool
}

// Copied reports whether the templates do no more with a name than to print it, as it is or in quotes, and to ask whether it is empty. They do
// not compare it, but perhaps with words that Compares has.
func (r *Reads) Copied(what string) bool {
	return !r.read[what] && !(strings.HasPrefix(what, ReadLabel) && r.read[ReadLabels])
}

// Compares reports whether the templates compare a name with this word.
func (r *Reads) Compares(word string) bool { return r.compared[word] }

// checksum begins the names of the annotations that can be slots. All others are in the key of a shape, so that templates may read them.
const checksum = "checksum"

// printable are those that may be printed: others may be of texts that change what is around them.
var printable = map[string]bool{ReadName: true, ReadNamespace: true, ReadLabels: true, ReadAccount: true, ReadContainer: true}

// Reads analyses the templates that pods get by themselves, once. The error is that of reading one.
func (in *Injector) Reads() (*Reads, error) { return in.reads() }

func (in *Injector) readTemplates() (*Reads, error) {
	templates, err := in.Select(nil)
	if err != nil {
		return nil, err
	}
	r := &Reads{read: map[string]bool{}, compared: map[string]bool{}}
	if strings.Contains(in.opts.Values, checksum) || len(in.opts.Overrides) > 0 || strings.Contains(in.opts.Mesh, checksum) {
		r.read[ReadAnnotations] = true // a template may ask for the annotation that a value names
	}
	for _, t := range templates {
		if t.nests {
			r.use(abstract{kind: dataKind})
		}
		if strings.Contains(t.text, checksum) {
			r.read[ReadAnnotations] = true
		}
		newCopyWalker(r, t.tmpl, wantsOTelAttributes(in.mesh)).walkAll()
	}
	return r, nil
}

// use notes that a value is read in another way.
func (r *Reads) use(v abstract) {
	for _, s := range v.all() {
		r.read[s] = true
	}
}

// print notes that a value is printed.
func (r *Reads) print(v abstract) {
	switch v.kind {
	case textKind, mixedKind, listKind:
		for _, s := range v.from {
			if !printable[s] && !strings.HasPrefix(s, ReadLabel) {
				r.read[s] = true
			}
		}
	default:
		r.use(v)
	}
}

// abstractKind is what is known of the type of a value.
type abstractKind uint8

const (
	cleanKind   abstractKind = iota // nothing of the workload that could be a slot
	textKind                        // one of the names
	mixedKind                       // a text with names in it
	listKind                        // a list of such texts
	unknownKind                     // anything that depends on names
	dataKind                        // the data of the template
	metaKind                        // the pod's metadata
	ownerKind                       // the workload's
	labelsKind
	annotationsKind
	specKind
	containersKind
	containerKind
)

// abstract is what a pipeline yields, as far as its text shows.
type abstract struct {
	kind abstractKind
	from []string // sorted; of texts, lists and unknown values
	// literal is the text of a string in the template, where it is one.
	literal *string
}

var containerSources = []string{ReadContainer, ReadImage, ReadVariables, ReadArguments, ReadCommand, ReadResources}

// all returns what the value depends on.
func (v abstract) all() []string {
	switch v.kind {
	case dataKind:
		return slices.Concat(containerSources, []string{ReadName, ReadNamespace, ReadLabels, ReadAnnotations, ReadAccount, ReadVolumes})
	case metaKind, ownerKind:
		return []string{ReadName, ReadNamespace, ReadLabels, ReadAnnotations}
	case labelsKind:
		return []string{ReadLabels}
	case annotationsKind:
		return []string{ReadAnnotations}
	case specKind:
		return slices.Concat(containerSources, []string{ReadAccount, ReadVolumes})
	case containersKind, containerKind:
		return containerSources
	}
	return v.from
}

// join returns what is either of two values.
func (v abstract) join(o abstract) abstract {
	v.literal, o.literal = nil, nil
	switch {
	case v.kind == cleanKind:
		return o
	case o.kind == cleanKind:
		return v
	}
	from := slices.Compact(slices.Sorted(slices.Values(slices.Concat(v.from, o.from))))
	if v.kind == o.kind {
		return abstract{kind: v.kind, from: from}
	}
	texts := func(k abstractKind) bool { return k == textKind || k == mixedKind }
	if texts(v.kind) && texts(o.kind) {
		return abstract{kind: mixedKind, from: from}
	}
	return abstract{kind: unknownKind, from: slices.Compact(slices.Sorted(slices.Values(slices.Concat(v.all(), o.all()))))}
}

func (v abstract) equal(o abstract) bool { return v.kind == o.kind && slices.Equal(v.from, o.from) }

func textOf(source string) abstract    { return abstract{kind: textKind, from: []string{source}} }
func unknownOf(source string) abstract { return abstract{kind: unknownKind, from: []string{source}} }

// metaFields are the fields of a pod's and a workload's metadata; others are in the key of a shape.
var metaFields = map[string]abstract{
	"Labels": {kind: labelsKind}, "Annotations": {kind: annotationsKind}, "Name": textOf(ReadName), "Namespace": textOf(ReadNamespace),
	"GenerateName": {kind: mixedKind, from: []string{ReadName}}, "OwnerReferences": unknownOf(ReadName),
	"String": {kind: mixedKind, from: []string{ReadName, ReadNamespace}},
}

var abstractFields = map[abstractKind]map[string]abstract{
	dataKind:  {"ObjectMeta": {kind: metaKind}, "DeploymentMeta": {kind: ownerKind}, "Spec": {kind: specKind}},
	metaKind:  metaFields,
	ownerKind: metaFields,
	specKind: {"ServiceAccountName": textOf(ReadAccount), "DeprecatedServiceAccount": textOf(ReadAccount), "Volumes": unknownOf(ReadVolumes),
		"Containers": {kind: containersKind}, "InitContainers": {kind: containersKind}},
	containerKind: {"Name": textOf(ReadContainer), "Image": textOf(ReadImage), "ImagePullPolicy": unknownOf(ReadImage), "Env": unknownOf(ReadVariables),
		"EnvFrom": unknownOf(ReadVariables), "Args": unknownOf(ReadArguments), "Command": unknownOf(ReadCommand), "Resources": unknownOf(ReadResources)},
}

// plainFields are the fields of values without names that the abstraction knows.
var plainFields = map[abstractKind][]string{
	dataKind: {"TypeMeta", "ProxyConfig", "MeshConfig", "Values", "Revision", "EstimatedConcurrency", "ProxyImage", "ProxyInitImage", "CompliancePolicy",
		"ProxyUID", "ProxyGID", "InboundTrafficPolicyMode", "NativeSidecars"},
	specKind: {"SecurityContext", "HostNetwork", "DNSConfig", "DNSPolicy", "ImagePullSecrets", "RestartPolicy", "ShareProcessNamespace",
		"TerminationGracePeriodSeconds", "HostPID", "HostIPC", "AutomountServiceAccountToken", "PriorityClassName", "NodeSelector"},
	containerKind: {"Ports", "SecurityContext", "LivenessProbe", "ReadinessProbe", "StartupProbe", "VolumeMounts", "RestartPolicy", "Lifecycle", "WorkingDir"},
}

// field returns a field of a value; where that is not known, all of the value is read.
func (r *Reads) field(v abstract, name string) abstract {
	if f, ok := abstractFields[v.kind][name]; ok {
		return f
	}
	switch {
	case v.kind == cleanKind || slices.Contains(plainFields[v.kind], name):
		return abstract{}
	case v.kind == labelsKind:
		return textOf(ReadLabel + name)
	case v.kind == annotationsKind:
		return abstract{} // a checksum is none that a template asks for
	}
	r.use(v)
	return abstract{}
}

// copyWalker walks the trees of a template, until nothing new is known of its variables.
type copyWalker struct {
	*Reads
	trees map[string]*parse.Tree
	// dots are the data of each tree, and variables what each of its variables may be.
	dots      map[string]abstract
	variables map[string]map[string]abstract
	tree      string
	otel      bool
	again     bool
}

func newCopyWalker(r *Reads, t *template.Template, otel bool) *copyWalker {
	w := &copyWalker{Reads: r, trees: map[string]*parse.Tree{}, dots: map[string]abstract{t.Name(): {kind: dataKind}}, variables: map[string]map[string]abstract{}, otel: otel}
	for _, sub := range t.Templates() {
		if sub.Tree != nil && sub.Root != nil {
			w.trees[sub.Name()], w.variables[sub.Name()] = sub.Tree, map[string]abstract{}
		}
	}
	return w
}

// maxWalks bounds the walks. What is not settled then counts as read.
const maxWalks = 20

func (w *copyWalker) walkAll() {
	names := slices.Sorted(maps.Keys(w.trees))
	for range maxWalks {
		w.again = false
		for _, name := range names {
			if dot, called := w.dots[name]; called {
				w.tree = name
				w.set("$", dot)
				w.list(w.trees[name].Root, dot)
			}
		}
		if !w.again {
			return
		}
	}
	w.use(abstract{kind: dataKind})
}

// set notes what a variable may be.
func (w *copyWalker) set(name string, v abstract) {
	vars := w.variables[w.tree]
	old, there := vars[name]
	if there {
		v = old.join(v)
	}
	v.literal = nil
	w.again = w.again || !there || !old.equal(v)
	vars[name] = v
}
