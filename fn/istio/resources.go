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

// resourceReader reads those of the ProxyConfig resources that the control plane reads: of its own revision, and not of
// namespaces that the mesh config leaves out (pilot/pkg/config/kube/crdclient/client.go).
type resourceReader struct {
	profile    *Profile
	mesh       *mesh.MeshConfig
	env        environment
	namespaces map[string]map[string]string // labels by name
	warnings   []string
}

func (r *resourceReader) readAll(objects []map[string]any, revision string) (*mesh.Resources, error) {
	discovered := r.discoveredNamespaces()
	var resources []*mesh.Resource
	for _, obj := range objects {
		one, warnings, err := mesh.ParseResource(obj)
		if err != nil {
			return nil, err
		}
		if one.Revision != "" && one.Revision != revision || !discovered(one.Namespace) {
			continue
		}
		if !r.profile.Has(feature.ProxyConfigImage) {
			one.Image = nil
		}
		r.warnings = append(r.warnings, warnings...)
		resources = append(resources, one)
	}
	return mesh.NewResources(resources), nil
}

// discoveredNamespaces returns which namespaces' resources the control plane reads, by discoverySelectors of the mesh config. One whose
// labels are not known is taken for one of them, with a warning. The root namespace needs a label like any other
// (pkg/kube/namespace/filter.go).
func (r *resourceReader) discoveredNamespaces() func(string) bool {
	selectors := r.discoverySelectors()
	if len(selectors) == 0 {
		return func(string) bool { return true }
	}
	warned := map[string]bool{}
	return func(namespace string) bool {
		own, known := r.namespaces[namespace]
		if !known {
			if slices.ContainsFunc(selectors, func(s labels.Selector) bool { return selectsByName(s, namespace) }) {
				return true
			}
			if !warned[namespace] {
				r.warnings = append(r.warnings, fmt.Sprintf("the ProxyConfigs in %s count, although the labels of the namespace are not known: the mesh config has discoverySelectors, "+
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
	other := func(q labels.Requirement) bool { return q.Key() != corev1.LabelMetadataName }
	return !slices.ContainsFunc(requirements, other) && s.Matches(labels.Set{corev1.LabelMetadataName: namespace})
}

// discoverySelectors are those of the mesh config; none where the version does not filter resources by them, or one is not valid, as
// istiod then keeps none.
func (r *resourceReader) discoverySelectors() []labels.Selector {
	filters := r.profile.Has(feature.DiscoveryFilter)
	if r.profile.Has(feature.DiscoveryFilterSwitch) {
		filters = r.env.boolean(envDiscoveryFilter, filters)
	}
	if !filters {
		return nil
	}
	var out []labels.Selector
	for i, one := range r.mesh.DiscoverySelectors {
		s, err := metav1.LabelSelectorAsSelector(selectorOf(one))
		if err != nil {
			r.warnings = append(r.warnings, fmt.Sprintf("discoverySelectors[%d] of the mesh config is not a valid selector: istiod leaves no namespace out: %v", i, err))
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
