// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
)

// The kinds of objects in a namespace that count for its pods.
const (
	accountKind     = "ServiceAccount"
	limitKind       = "LimitRange"
	proxyConfigKind = "ProxyConfig"
)

// Namespaces returns the namespaces among the objects as a policy lists them.
func Namespaces(objects []Object) []v1alpha1.Namespace {
	b := &policyBuilder{Import: &Import{}}
	b.readNamespaces(viewObjects(objects))
	return b.spec.Namespaces
}

// IsPolicyAnnotation reports whether an annotation of a namespace is one that an injector reads.
func IsPolicyAnnotation(annotation string) bool { return isPolicyAnnotation(annotation) }

// namespaceDomains are the owners of namespace annotations that injectors read: OpenShift's user ids, and the meshes'
// own.
var namespaceDomains = []string{"istio.io", "linkerd.io", "opentelemetry.io", "vault.hashicorp.com", "dapr.io",
	"prerig.dev"}

// setNamespaces adds the namespaces. A policy of Istio without any injects into all of them.
func (b *policyBuilder) setNamespaces(all []*clusterObject) {
	b.readNamespaces(all)
	if len(b.spec.Namespaces) == 0 {
		b.spec.UnknownNamespace = v1alpha1.UnknownNamespaceInject
		b.addNote("the input has no Namespace, so the policy has unknownNamespace: Inject: pods of all namespaces are injected unless they opt out. " +
			"To use labels, import the cluster's namespaces too, or list them in spec.namespaces and remove unknownNamespace")
	}
}

// readNamespaces copies all labels, because a webhook may select by any of them, and the relevant annotations.
func (b *policyBuilder) readNamespaces(all []*clusterObject) {
	for _, o := range all {
		if o.kind != "Namespace" || !strings.HasPrefix(podmap.TextAt(o.Value, "apiVersion"), "v1") {
			continue
		}
		ns := v1alpha1.Namespace{Name: o.name, Labels: o.labels}
		for key, v := range stringMapAt(o.Value, "metadata", "annotations") {
			if !isPolicyAnnotation(key) {
				continue
			}
			if ns.Annotations == nil {
				ns.Annotations = map[string]string{}
			}
			ns.Annotations[key] = v
		}
		b.spec.Namespaces = append(b.spec.Namespaces, ns)
	}
	b.spec.Namespaces = slices.CompactFunc(b.spec.Namespaces, func(a, c v1alpha1.Namespace) bool { return a.Name == c.Name })
	b.readContents(all)
}

// readContents adds the objects in the namespaces that affect their pods, except those of namespaces that are not
// listed: listing one only for them would imply that it has no labels.
func (b *policyBuilder) readContents(all []*clusterObject) {
	at := map[string]*v1alpha1.Namespace{}
	for i := range b.spec.Namespaces {
		at[b.spec.Namespaces[i].Name] = &b.spec.Namespaces[i]
	}
	left, seen := 0, map[[3]string]bool{}
	for _, o := range slices.SortedStableFunc(slices.Values(all), olderFirst) {
		id := [3]string{o.kind, o.namespace, o.name}
		if !isContent(o) || seen[id] {
			continue
		}
		seen[id] = true
		namespace := at[o.namespace]
		if namespace == nil {
			left++
			continue
		}
		switch o.kind {
		case accountKind:
			namespace.ServiceAccounts = append(namespace.ServiceAccounts,
				v1alpha1.ServiceAccount{Name: o.name, ImagePullSecrets: pullSecrets(o)})
		case limitKind:
			limits, _ := podmap.ValueAt(o.Value, "spec", "limits").([]any)
			namespace.LimitRanges = append(namespace.LimitRanges,
				v1alpha1.LimitRange{Name: o.name, Limits: append([]any{}, limits...)})
		case proxyConfigKind:
			spec, _ := o.Value["spec"].(map[string]any)
			if len(spec) == 0 {
				spec = nil // as it is read again
			}
			namespace.ProxyConfigs = append(namespace.ProxyConfigs,
				v1alpha1.ProxyConfig{Name: o.name, Spec: spec, Revision: o.labels[labelRevision]})
		}
	}
	for _, one := range at {
		slices.SortFunc(one.ServiceAccounts, func(a, b v1alpha1.ServiceAccount) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(one.LimitRanges, func(a, b v1alpha1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	}
	if left > 0 {
		b.addWarning("%s skipped, because the input lacks their Namespaces: ServiceAccounts with pull secrets, LimitRanges and ProxyConfigs are listed with "+
			"their namespaces", countText(left, "object"))
	}
}

// olderFirst orders objects as istiod orders its resources: by their age, and those of one second by their names
// (sortConfigByCreationTime in pilot/pkg/model/config.go).
func olderFirst(a, b *clusterObject) int {
	created := func(o *clusterObject) string { return podmap.TextAt(o.Value, "metadata", "creationTimestamp") }
	return cmp.Or(strings.Compare(created(a), created(b)), strings.Compare(a.name, b.name))
}

// isContent reports whether an object counts for the pods of its namespace: a ServiceAccount does where it has pull
// secrets.
func isContent(o *clusterObject) bool {
	switch version := podmap.TextAt(o.Value, "apiVersion"); o.kind {
	case accountKind:
		return version == "v1" && len(pullSecrets(o)) > 0
	case limitKind:
		return version == "v1"
	case proxyConfigKind:
		return strings.HasPrefix(version, "networking.istio.io/")
	}
	return false
}

// pullSecrets are the names of those of a ServiceAccount.
func pullSecrets(o *clusterObject) (names []string) {
	for _, one := range objectsOf(o.Value["imagePullSecrets"]) {
		if name, _ := one["name"].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func isPolicyAnnotation(annotation string) bool {
	domain, _, ok := strings.Cut(annotation, "/")
	if !ok {
		return false
	}
	if strings.HasPrefix(annotation, "openshift.io/sa.scc.") {
		return true
	}
	return slices.ContainsFunc(namespaceDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}
