// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package importer builds an InjectionPolicy from the objects of a cluster, or of a rendered chart, of Istio,
// Linkerd, Vault, Cloud SQL or OpenTelemetry, or from a document that requests an installation of Istio, so that no
// policy has to be written by hand. It uses only the inputs of injection: a policy never contains a Secret, a
// managed field or a certificate, except those that pods have (Linkerd's trust anchors, and the CA configured in
// Vault's injector). It reads the objects passed to it and never connects to a cluster.
package importer

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// Object is one Kubernetes object with the place where it was read.
type Object struct {
	// Path and Line are for messages.
	Path string
	Line int
	// Document provides the lines of fields; nil if they are unknown.
	Document *manifest.Document
	// Value is the object.
	Value map[string]any
}

// Options select what is imported.
type Options struct {
	// Revision of the control plane; empty means the only one.
	Revision string
	// Namespace of the control plane; empty means the only one.
	Namespace string
	// Version of Istio; empty means the one in the objects.
	Version string
	// KubernetesVersion is that of the oldest kubelet; empty means that of the oldest Node among the objects.
	KubernetesVersion string
	// Name of the policy; empty means istio, followed by the revision unless it is the default one, or the name of
	// the first sidecar without Istio.
	Name string
}

// Import is a policy together with what the user should know about it.
type Import struct {
	Policy *v1alpha1.InjectionPolicy
	// From describes the origin of the policy in one line.
	From string
	// Notes and Warnings are one sentence each.
	Notes, Warnings []string
}

func (imp *Import) addNote(format string, args ...any) {
	imp.Notes = append(imp.Notes, fmt.Sprintf(format, args...))
}

func (imp *Import) addWarning(format string, args ...any) {
	imp.Warnings = append(imp.Warnings, fmt.Sprintf(format, args...))
}

const (
	injectorName = "istio-sidecar-injector"
	meshName     = "istio"

	// The labels with which Istio marks the objects of a revision and of a revision tag.
	labelRevision = "istio.io/rev"
	labelTag      = "istio.io/tag"

	defaultRevision = "default"

	// localConfig keeps kustomize, kpt and others from sending an object to the cluster.
	localConfig = "config.kubernetes.io/local-config"
)

// controlPlane is one control plane: its two ConfigMaps and its Deployment.
type controlPlane struct {
	namespace, revision string
	injector, mesh      *clusterObject
	istiod              *clusterObject
}

// clusterObject is a view on an Object.
type clusterObject struct {
	Object
	kind, name, namespace string
	labels                map[string]string
}

// Policy makes a policy of the objects. The order of the objects does not matter.
func Policy(objects []Object, opts Options) (*Import, error) {
	all := viewObjects(objects)
	planes, err := controlPlanes(all)
	if err != nil {
		return nil, err
	}
	imp := &Import{}
	sidecars := &sidecarReader{Import: imp}
	if err := sidecars.read(all); err != nil {
		return nil, err
	}
	b := &policyBuilder{Import: imp, origins: sidecars.origins}
	b.spec.Sidecars = sidecars.sidecars
	installation, err := findInstallation(all, opts)
	if err != nil {
		return nil, err
	}
	var name string
	switch {
	case len(planes) == 0 && installation != nil:
		err = b.operatorPolicy(installation, all, opts)
	case len(planes) == 0 && len(b.spec.Sidecars) > 0:
		name = b.spec.Sidecars[0].BuiltIn
		b.sidecarPolicy(all)
	default:
		if b.plane, err = choosePlane(planes, opts); err != nil {
			return nil, err
		}
		err = b.istioPolicy(all, opts)
		if installation != nil {
			b.addNote("%s skipped: the input has the installed objects", installation)
		}
	}
	if err != nil {
		return nil, err
	}
	if b.plane != nil {
		name = meshName + revisionSuffix(b.plane.revision)
	}
	if opts.Name != "" {
		name = opts.Name
	}
	imp.Policy = &v1alpha1.InjectionPolicy{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.Kind,
		Metadata:   v1alpha1.Metadata{Name: name, Annotations: map[string]string{localConfig: "true"}},
		Spec:       b.spec,
	}
	imp.From = b.originText()
	imp.warnOfTemplates()
	sort.Strings(imp.Warnings)
	return imp, nil
}

// sidecarReader reads the sidecars of other meshes and injectors.
type sidecarReader struct {
	*Import
	sidecars []v1alpha1.Sidecar
	origins  []string // of the sidecars
}

// read adds the sidecars of Linkerd, Vault, OpenTelemetry and Cloud SQL if the settings of their injectors
// are present.
func (r *sidecarReader) read(all []*clusterObject) error {
	linkerd, err := findLinkerd(all)
	if err != nil {
		return err
	}
	if linkerd != nil {
		if err := r.setLinkerd(linkerd, all); err != nil {
			return err
		}
	}
	vault, err := findVault(all)
	if err != nil {
		return err
	}
	if vault != nil {
		if err := r.setVault(vault, all); err != nil {
			return err
		}
	}
	r.setCollectors(r.findCollectors(all))
	r.setInstrumentations(r.findInstrumentations(all))
	return r.setCloudSQL(all)
}

// sidecarPolicy completes a policy without Istio.
func (b *policyBuilder) sidecarPolicy(all []*clusterObject) {
	b.readNamespaces(all)
	switch {
	case len(b.spec.Namespaces) > 0:
	case b.spec.Sidecars[0].BuiltIn == collectorSidecar:
		b.addNote("the input has no Namespace: pods get the collector by their own annotation sidecar.opentelemetry.io/inject. To use those of " +
			"namespaces, too, import the cluster's namespaces, or list them in spec.namespaces")
	case b.spec.Sidecars[0].BuiltIn == instrumentationSidecar:
		b.addNote("the input has no Namespace: pods are instrumented by their own annotations instrumentation.opentelemetry.io/inject-…. To use those " +
			"of namespaces, too, import the cluster's namespaces, or list them in spec.namespaces")
	case b.spec.Sidecars[0].BuiltIn == linkerdName:
		b.addNote("the input has no Namespace: pods get the proxy by their own annotation linkerd.io/inject. To use those of namespaces, too, import " +
			"the cluster's namespaces, or list them in spec.namespaces")
	}
	b.noteSecrets(all)
}

// istioPolicy fills in what is Istio's.
func (b *policyBuilder) istioPolicy(all []*clusterObject, opts Options) error {
	b.setInjector()
	if err := b.setWebhooks(all); err != nil {
		return err
	}
	b.readDeployment()
	b.checkVersion(opts.Version)
	b.setKubeletVersion(all, opts)
	b.setNamespaces(all)
	b.noteSecrets(all)
	return nil
}

// Comment returns the comment at the head of the policy: its origins, and the choices made in it.
func (imp *Import) Comment() string {
	if imp.Policy.Spec.UnknownNamespace == "" {
		return imp.From
	}
	return imp.From + `
unknownNamespace: Inject, as the input has no Namespace: pods of all namespaces are injected that do not opt out.
To go by the labels of namespaces as the cluster does, list them and take unknownNamespace out:
  namespaces:
  - {name: shop, labels: {istio-injection: enabled}}`
}

// viewObjects reads the metadata of the objects and puts them into an order that does not depend on the input's.
func viewObjects(objects []Object) []*clusterObject {
	all := make([]*clusterObject, 0, len(objects))
	for _, o := range objects {
		kind, _ := o.Value["kind"].(string)
		v := &clusterObject{
			Object:    o,
			kind:      kind,
			name:      podmap.TextAt(o.Value, "metadata", "name"),
			namespace: podmap.TextAt(o.Value, "metadata", "namespace"),
			labels:    stringMapAt(o.Value, "metadata", "labels"),
		}
		all = append(all, v)
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if c := strings.Compare(a.kind, b.kind); c != 0 {
			return c < 0
		}
		if c := strings.Compare(a.namespace, b.namespace); c != 0 {
			return c < 0
		}
		return a.name < b.name
	})
	return all
}

func (o *clusterObject) String() string {
	s := o.kind + " " + o.name
	if o.namespace != "" {
		s = o.kind + " " + o.namespace + "/" + o.name
	}
	return fmt.Sprintf("%s (%s:%d)", s, o.Path, o.Line)
}

// revisionOf returns the revision of the object: its label, or otherwise the part of its name after base.
func (o *clusterObject) revisionOf(base string) string {
	if rev := o.labels[labelRevision]; rev != "" {
		return rev
	}
	if rev, ok := strings.CutPrefix(o.name, base+"-"); ok && rev != "" {
		return rev
	}
	return defaultRevision
}

// isNamed reports whether the object is the one of that name for some revision.
func (o *clusterObject) isNamed(base string) bool {
	return o.name == base || strings.HasPrefix(o.name, base+"-")
}

// controlPlanes finds the control planes by their injector's ConfigMap.
func controlPlanes(all []*clusterObject) ([]*controlPlane, error) {
	var planes []*controlPlane
	find := func(o *clusterObject, rev string) *controlPlane {
		for _, p := range planes {
			if p.namespace == o.namespace && p.revision == rev {
				return p
			}
		}
		return nil
	}
	for _, o := range all {
		if o.kind != "ConfigMap" || !o.isNamed(injectorName) || podmap.TextAt(o.Value, "data", "config") == "" {
			continue
		}
		rev := o.revisionOf(injectorName)
		if p := find(o, rev); p != nil {
			return nil, fmt.Errorf("importing: %s and %s are both for the revision %s", p.injector, o, rev)
		}
		planes = append(planes, &controlPlane{namespace: o.namespace, revision: rev, injector: o})
	}
	for _, o := range all {
		switch {
		case o.kind == "ConfigMap" && o.isNamed(meshName) && podmap.TextAt(o.Value, "data", "mesh") != "":
			p := find(o, o.revisionOf(meshName))
			if p == nil {
				continue
			}
			if p.mesh != nil {
				return nil, fmt.Errorf("importing: %s and %s are both for the revision %s", p.mesh, o, p.revision)
			}
			p.mesh = o
		case o.kind == "Deployment" && discoveryContainer(o) != nil:
			if p := find(o, o.revisionOf("istiod")); p != nil && p.istiod == nil {
				p.istiod = o
			}
		}
	}
	return planes, nil
}

// ErrNoControlPlane is the error where no object of the input configures an injector.
var ErrNoControlPlane = fmt.Errorf("no ConfigMap %s with data.config, no %s of Linkerd, no Deployment of Vault's injector, no AuthProxyWorkload, "+
	"no OpenTelemetryCollector with mode sidecar, no Instrumentation, and no IstioOperator or Istio of the Sail operator; "+
	"import the objects of the control plane's namespace: kubectl -n istio-system get configmaps,deployments,mutatingwebhookconfigurations,namespaces,nodes -o yaml",
	injectorName, linkerdConfig)

// choosePlane returns the control plane that the options name, or the only one.
func choosePlane(planes []*controlPlane, opts Options) (*controlPlane, error) {
	if len(planes) == 0 {
		return nil, fmt.Errorf("importing: %w", ErrNoControlPlane)
	}
	wanted := opts.Revision
	var found []*controlPlane
	for _, p := range planes {
		if (wanted == "" || p.revision == wanted) && (opts.Namespace == "" || p.namespace == opts.Namespace) {
			found = append(found, p)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return nil, fmt.Errorf("importing: no control plane matches %s; the input has %s", optionsText(opts), listPlanes(planes))
	case keysDiffer(found, func(p *controlPlane) string { return p.revision }):
		return nil, fmt.Errorf("importing: the input has several revisions; choose one with --revision: %s", listPlanes(found))
	}
	return nil, fmt.Errorf("importing: the input has control planes in several namespaces; choose one with --istio-namespace: %s", listPlanes(found))
}

func keysDiffer(planes []*controlPlane, key func(*controlPlane) string) bool {
	return slices.ContainsFunc(planes, func(p *controlPlane) bool { return key(p) != key(planes[0]) })
}

func optionsText(opts Options) string {
	var parts []string
	if opts.Revision != "" {
		parts = append(parts, "--revision "+opts.Revision)
	}
	if opts.Namespace != "" {
		parts = append(parts, "--istio-namespace "+opts.Namespace)
	}
	return strings.Join(parts, " ")
}

func listPlanes(planes []*controlPlane) string {
	var parts []string
	for _, p := range planes {
		if p.namespace == "" {
			parts = append(parts, p.revision)
			continue
		}
		parts = append(parts, fmt.Sprintf("%s (in namespace %s)", p.revision, p.namespace))
	}
	return strings.Join(parts, ", ")
}

// revisionSuffix is how a revision shows in the names of objects.
func revisionSuffix(revision string) string {
	if revision == "" || revision == defaultRevision {
		return ""
	}
	return "-" + revision
}

func countText(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
