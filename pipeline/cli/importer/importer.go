// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package importer makes an InjectionPolicy of the objects of a cluster or of a rendered Istio chart, so that nobody has to
// put one together by hand. It takes what decides about injection and nothing else: no Secret, no certificate, no managed
// field gets into a policy. It reads objects that it is given and never talks to a cluster.
package importer

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Object is one Kubernetes object with the place where it was read.
type Object struct {
	// Path and Line are for messages.
	Path string
	Line int
	// Value is the object.
	Value map[string]any
}

// Options select what is imported.
type Options struct {
	// Revision of the control plane; empty means the only one there is.
	Revision string
	// Namespace of the control plane; empty means the only one there is.
	Namespace string
	// Version of Istio; empty means what the objects say.
	Version string
	// Name of the policy; empty means istio, with the revision behind it where it is not the default one.
	Name string
}

// Import is a policy together with what the user should know about it.
type Import struct {
	Policy *v1alpha1.InjectionPolicy
	// From says in one line what the policy was made of.
	From string
	// Notes and Warnings are one sentence each.
	Notes, Warnings []string
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

// plane is one control plane: its two ConfigMaps and its Deployment.
type plane struct {
	namespace, revision string
	injector, mesh      *object
	istiod              *object
}

// object is a view on an Object.
type object struct {
	Object
	kind, name, namespace string
	labels                map[string]string
}

// Policy makes a policy of the objects. The order of the objects does not matter.
func Policy(objects []Object, opts Options) (*Import, error) {
	all := view(objects)
	planes, err := controlPlanes(all)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(planes, opts, len(objects))
	if err != nil {
		return nil, err
	}
	b := &builder{plane: chosen, imp: &Import{}}
	b.istio()
	if err := b.webhooks(all); err != nil {
		return nil, err
	}
	b.istiod()
	b.checkVersion(opts.Version)
	b.nodes(all)
	b.namespaces(all)
	b.secrets(all)

	name := opts.Name
	if name == "" {
		name = meshName + suffix(chosen.revision)
	}
	b.imp.Policy = &v1alpha1.InjectionPolicy{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.Kind,
		Metadata:   v1alpha1.Metadata{Name: name, Annotations: map[string]string{localConfig: "true"}},
		Spec:       b.spec,
	}
	b.imp.From = b.from()
	sort.Strings(b.imp.Warnings)
	return b.imp, nil
}

// Comment is what stands at the head of the policy: what it was made of, and what was chosen in it.
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

// view reads the metadata of the objects and puts them into an order that does not depend on the input's.
func view(objects []Object) []*object {
	all := make([]*object, 0, len(objects))
	for _, o := range objects {
		kind, _ := o.Value["kind"].(string)
		v := &object{
			Object:    o,
			kind:      kind,
			name:      text(o.Value, "metadata", "name"),
			namespace: text(o.Value, "metadata", "namespace"),
			labels:    texts(o.Value, "metadata", "labels"),
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

func (o *object) String() string {
	s := o.kind + " " + o.name
	if o.namespace != "" {
		s = o.kind + " " + o.namespace + "/" + o.name
	}
	return fmt.Sprintf("%s (%s:%d)", s, o.Path, o.Line)
}

// revision of the object: by its label, else by what follows the base of its name.
func (o *object) revision(base string) string {
	if rev := o.labels[labelRevision]; rev != "" {
		return rev
	}
	if rev, ok := strings.CutPrefix(o.name, base+"-"); ok && rev != "" {
		return rev
	}
	return defaultRevision
}

// named reports whether the object is the one of that name for some revision.
func (o *object) named(base string) bool {
	return o.name == base || strings.HasPrefix(o.name, base+"-")
}

// controlPlanes finds the control planes by their injector's ConfigMap.
func controlPlanes(all []*object) ([]*plane, error) {
	var planes []*plane
	find := func(o *object, rev string) *plane {
		for _, p := range planes {
			if p.namespace == o.namespace && p.revision == rev {
				return p
			}
		}
		return nil
	}
	for _, o := range all {
		if o.kind != "ConfigMap" || !o.named(injectorName) || text(o.Value, "data", "config") == "" {
			continue
		}
		rev := o.revision(injectorName)
		if p := find(o, rev); p != nil {
			return nil, fmt.Errorf("importing: %s and %s are both for the revision %s", p.injector, o, rev)
		}
		planes = append(planes, &plane{namespace: o.namespace, revision: rev, injector: o})
	}
	for _, o := range all {
		switch {
		case o.kind == "ConfigMap" && o.named(meshName) && text(o.Value, "data", "mesh") != "":
			p := find(o, o.revision(meshName))
			if p == nil {
				continue
			}
			if p.mesh != nil {
				return nil, fmt.Errorf("importing: %s and %s are both for the revision %s", p.mesh, o, p.revision)
			}
			p.mesh = o
		case o.kind == "Deployment" && discovery(o) != nil:
			if p := find(o, o.revision("istiod")); p != nil && p.istiod == nil {
				p.istiod = o
			}
		}
	}
	return planes, nil
}

// choose takes the control plane that the options name, or the only one.
func choose(planes []*plane, opts Options, objects int) (*plane, error) {
	if len(planes) == 0 {
		return nil, fmt.Errorf("importing: no ConfigMap %s with data.config is among the %s; "+
			"take the objects of the control plane's namespace: kubectl -n istio-system get configmaps,mutatingwebhookconfigurations,namespaces -o yaml",
			injectorName, count(objects, "object"))
	}
	wanted := opts.Revision
	var found []*plane
	for _, p := range planes {
		if (wanted == "" || p.revision == wanted) && (opts.Namespace == "" || p.namespace == opts.Namespace) {
			found = append(found, p)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return nil, fmt.Errorf("importing: no control plane matches %s; the input has %s", asked(opts), list(planes))
	case differ(found, func(p *plane) string { return p.revision }):
		return nil, fmt.Errorf("importing: the input has several revisions; choose one with --revision: %s", list(found))
	}
	return nil, fmt.Errorf("importing: the input has control planes in several namespaces; choose one with --istio-namespace: %s", list(found))
}

func differ(planes []*plane, key func(*plane) string) bool {
	return slices.ContainsFunc(planes, func(p *plane) bool { return key(p) != key(planes[0]) })
}

func asked(opts Options) string {
	var parts []string
	if opts.Revision != "" {
		parts = append(parts, "--revision "+opts.Revision)
	}
	if opts.Namespace != "" {
		parts = append(parts, "--istio-namespace "+opts.Namespace)
	}
	return strings.Join(parts, " ")
}

func list(planes []*plane) string {
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

// suffix is how a revision shows in the names of objects.
func suffix(revision string) string {
	if revision == "" || revision == defaultRevision {
		return ""
	}
	return "-" + revision
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
