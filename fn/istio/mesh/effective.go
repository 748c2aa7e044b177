// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"reflect"

	"github.com/prerig/prerig/fn/istio/feature"
)

// Resource is a ProxyConfig resource (networking.istio.io), which sets a part of the proxy configuration for a namespace,
// for some of its pods, or in the root namespace for the mesh.
type Resource struct {
	Namespace, Name string
	// Revision is the label istio.io/rev: a control plane reads those of its own revision, and those without one. Tags do not count
	// (LabelsInRevision in pkg/config/model.go).
	Revision string
	// Selector of the pods; nil for all of the namespace.
	Selector map[string]string
	// HasSelector reports whether a selector exists, even an empty one, which matches no pods.
	HasSelector bool
	Concurrency *Int32Value
	Environment map[string]string
	Image       *ProxyImage
}

// RevisionLabel names the control plane that reads a resource.
const RevisionLabel = "istio.io/rev"

// resourceSpec has the fields of the resource's spec.
type resourceSpec struct {
	Selector             *resourceSelector `pb:"selector"`
	Concurrency          *Int32Value       `pb:"concurrency"`
	EnvironmentVariables map[string]string `pb:"environment_variables"`
	Image                *ProxyImage       `pb:"image"`
}

type resourceSelector struct {
	MatchLabels map[string]string `pb:"match_labels"`
}

// ParseResource reads a ProxyConfig resource. Unknown fields are warned of.
func ParseResource(obj map[string]any) (*Resource, []string, error) {
	meta, _ := obj["metadata"].(map[string]any)
	r := &Resource{}
	r.Name, _ = meta["name"].(string)
	r.Namespace, _ = meta["namespace"].(string)
	labels, _ := meta["labels"].(map[string]any)
	r.Revision, _ = labels[RevisionLabel].(string)
	fields, ok := plainNumbers(obj["spec"]).(map[string]any)
	if !ok && obj["spec"] != nil {
		return nil, nil, fmt.Errorf("reading ProxyConfig %s/%s: %w", r.Namespace, r.Name, wrongType("spec", "a mapping", obj["spec"]))
	}
	var spec resourceSpec
	d := &decoder{release: feature.Since(feature.ProxyConfigResources)}
	if err := d.decodeMessage(reflect.ValueOf(&spec).Elem(), fields, "spec"); err != nil {
		return nil, nil, fmt.Errorf("reading ProxyConfig %s/%s: %w", r.Namespace, r.Name, err)
	}
	if spec.Selector != nil {
		r.HasSelector, r.Selector = true, spec.Selector.MatchLabels
	}
	r.Concurrency, r.Environment, r.Image = spec.Concurrency, spec.EnvironmentVariables, spec.Image
	return r, d.warnings, nil
}

// Resources are the ProxyConfig resources of a cluster.
type Resources struct {
	byNamespace map[string][]*Resource
}

// NewResources groups resources by namespace. If several of one match, istiod uses the oldest (GetProxyConfigs in
// pilot/pkg/model/proxy_config.go): here the first.
func NewResources(resources []*Resource) *Resources {
	rs := &Resources{byNamespace: map[string][]*Resource{}}
	for _, r := range resources {
		rs.byNamespace[r.Namespace] = append(rs.byNamespace[r.Namespace], r)
	}
	return rs
}

// configForNamespace returns what holds for every pod of a namespace.
func (rs *Resources) configForNamespace(namespace string) *ProxyConfig {
	if rs == nil {
		return nil
	}
	for _, r := range rs.byNamespace[namespace] {
		if !r.HasSelector {
			return r.proxyConfig()
		}
	}
	return nil
}

// configForPod returns what holds for the pods that have the labels.
func (rs *Resources) configForPod(namespace string, labels map[string]string) *ProxyConfig {
	if rs == nil {
		return nil
	}
	for _, r := range rs.byNamespace[namespace] {
		if len(r.Selector) > 0 && matchesLabels(r.Selector, labels) {
			return r.proxyConfig()
		}
	}
	return nil
}

func matchesLabels(selector, labels map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

func (r *Resource) proxyConfig() *ProxyConfig {
	return &ProxyConfig{Workers: r.Concurrency, ProxyMetadata: r.Environment, Image: r.Image}
}

// Effective returns the proxy configuration that the templates see for a pod, and warnings about its annotation
// proxy.istio.io/config, which is nil if absent. Up to 1.12 that is the mesh's defaultConfig with the annotation
// over it. From 1.13 these merge, the later over the earlier: built-in defaults, defaultConfig, the resource of the
// root namespace, that of the pod's namespace, the annotation, the resource that selects the pod. Up to 1.16.3 and
// 1.17.1 they merge as protobuf messages do; later a field that is set replaces the whole field below it, so that
// an empty tracing turns tracing off (istio/istio#42518).
func (m *MeshConfig) Effective(rs *Resources, namespace string, labels map[string]string, annotation *string) (*ProxyConfig, []string, error) {
	if !feature.In(m.release, feature.ProxyConfigResources) {
		if annotation == nil {
			return m.DefaultConfig, nil, nil
		}
		return ApplyProxyConfig(*annotation, m.DefaultConfig)
	}
	pc := DefaultProxyConfig(m.release)
	mergeProxyConfig(pc, m.DefaultConfig)
	if m.RootNamespace != "" {
		mergeProxyConfig(pc, rs.configForNamespace(m.RootNamespace))
	}
	if namespace != m.RootNamespace {
		mergeProxyConfig(pc, rs.configForNamespace(namespace))
	}
	var warnings []string
	if annotation != nil {
		fields, err := parseYAML(*annotation)
		if err != nil {
			return nil, nil, err
		}
		d := &decoder{release: m.release}
		own := &ProxyConfig{view: view{m.release}}
		if err := d.decodeMessage(reflect.ValueOf(own).Elem(), fields, ""); err != nil {
			return nil, nil, err
		}
		warnings = d.warnings
		mergeProxyConfig(pc, own)
	}
	mergeProxyConfig(pc, rs.configForPod(namespace, labels))
	return pc, warnings, nil
}

// mergeProxyConfig merges src over dst by the rules of dst's version (mergeWithPrecedence in
// pilot/pkg/model/proxy_config.go). Where fields merge, only the concurrency and, since resources have it, the image
// are replaced as a whole.
func mergeProxyConfig(dst, src *ProxyConfig) {
	if src == nil {
		return
	}
	if feature.In(dst.release, feature.ProxyConfigReplaced) {
		replaceFields(dst, src)
		return
	}
	messageMerge{durations: feature.In(dst.release, feature.ProxyConfigDurations)}.mergeInto(reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem())
	if src.Workers != nil {
		dst.Workers = cloneMessage(src.Workers)
	}
	if src.Image != nil && feature.In(dst.release, feature.ProxyConfigImage) {
		dst.Image = cloneMessage(src.Image)
	}
}

// replaceFields puts the fields of src that are not zero in the place of dst's, but for those that merge by their own rules.
func replaceFields(dst, src *ProxyConfig) {
	metadata, headers := dst.ProxyMetadata, dst.ProxyHeaders
	to, from := reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem()
	fields := fieldsOf(to.Type())
	for _, f := range fields {
		v := from.Field(f.index)
		if v.IsZero() {
			continue
		}
		if f.oneof != "" {
			clearOneof(to, fields, f.oneof)
		}
		to.Field(f.index).Set(copyValue(v))
	}
	restoreKeptFields(dst, metadata, headers)
}
