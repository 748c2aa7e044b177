// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
)

// envDiscoveryFilter has the control plane read resources of namespaces only that discoverySelectors match.
const envDiscoveryFilter = "ENABLE_ENHANCED_RESOURCE_SCOPING"

// readResources reads those of the ProxyConfig resources that the control plane reads: of its own revision, and not of namespaces that
// the mesh config leaves out (pilot/pkg/config/kube/crdclient/client.go).
func (in *Injector) readResources() error {
	if !in.profile.Has(feature.ProxyConfigResources) {
		return nil
	}
	discovered := in.discoveredNamespaces()
	var resources []*mesh.Resource
	for _, obj := range in.opts.ProxyConfigs {
		r, warnings, err := mesh.ParseResource(obj)
		if err != nil {
			return err
		}
		if r.Revision != "" && r.Revision != in.Revision() || !discovered(r.Namespace) {
			continue
		}
		if !in.profile.Has(feature.ProxyConfigImage) {
			r.Image = nil
		}
		in.warnings = append(in.warnings, warnings...)
		resources = append(resources, r)
	}
	in.resources = mesh.NewResources(resources)
	return nil
}

// discoveredNamespaces returns which namespaces' resources the control plane reads, by discoverySelectors of the mesh config. One whose
// labels are not known is taken for one of them, with a warning. The root namespace needs a label like any other
// (pkg/kube/namespace/filter.go).
func (in *Injector) discoveredNamespaces() func(string) bool {
	selectors := in.discoverySelectors()
	if len(selectors) == 0 {
		return func(string) bool { return true }
	}
	warned := map[string]bool{}
	return func(namespace string) bool {
		own, known := in.opts.NamespaceLabels[namespace]
		if !known {
			if slices.ContainsFunc(selectors, func(s labels.Selector) bool { return selectsByName(s, namespace) }) {
				return true
			}
			if !warned[namespace] {
				in.warnings = append(in.warnings, fmt.Sprintf("the ProxyConfigs in %s count, although the labels of the namespace are not known: the mesh config has discoverySelectors, "+
					"and istiod reads only those of namespaces that they match; list the namespace with its labels in spec.namespaces", namespace))
			}
			warned[namespace] = true
			return true
		}
		return slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(own)) })
	}
}

// selectsByName reports whether a selector matches a namespace by its name alone, which the API server adds to each
// as a label.
func selectsByName(s labels.Selector, namespace string) bool {
	requirements, _ := s.Requirements()
	other := func(r labels.Requirement) bool { return r.Key() != corev1.LabelMetadataName }
	return !slices.ContainsFunc(requirements, other) && s.Matches(labels.Set{corev1.LabelMetadataName: namespace})
}

// discoverySelectors are those of the mesh config; none where the version does not filter resources by them, or one is not valid, as
// istiod then keeps none.
func (in *Injector) discoverySelectors() []labels.Selector {
	filters := in.profile.Has(feature.DiscoveryFilter)
	if in.profile.Has(feature.DiscoveryFilterSwitch) {
		filters = in.EnvBool(envDiscoveryFilter, filters)
	}
	if !filters {
		return nil
	}
	var out []labels.Selector
	for i, one := range in.mesh.DiscoverySelectors {
		s, err := metav1.LabelSelectorAsSelector(selectorOf(one))
		if err != nil {
			in.warnings = append(in.warnings, fmt.Sprintf("discoverySelectors[%d] of the mesh config is not a valid selector: istiod leaves no namespace out: %v", i, err))
			return nil
		}
		out = append(out, s)
	}
	return out
}

func selectorOf(s *mesh.LabelSelector) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	return out
}
