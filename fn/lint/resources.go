// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/podvalidation"
	"github.com/prerig/prerig/fn/quantity"
)

// resourceAnnotation are the two annotations that set a resource of the proxy.
type resourceAnnotation struct{ resource, request, limit string }

var resourceAnnotations = []resourceAnnotation{
	{"cpu", "sidecar.istio.io/proxyCPU", "sidecar.istio.io/proxyCPULimit"},
	{"memory", "sidecar.istio.io/proxyMemory", "sidecar.istio.io/proxyMemoryLimit"},
}

func (p *pod) hasAnnotation(annotation string) bool {
	_, ok := p.annotations[annotation]
	return ok
}

func checkAnnotationLimits(p *pod) []finding {
	if p.proxy == nil {
		return nil
	}
	var out []finding
	for _, a := range resourceAnnotations {
		if !p.hasAnnotation(a.request) || p.proxy.nestedField("resources", "limits", a.resource) != nil {
			continue
		}
		out = append(out, finding{
			path: annotationPath(a.request), container: proxyName, current: p.annotations[a.request],
			message: fmt.Sprintf("%s is set without %s: the proxy has no %s limit", a.request, a.limit, a.resource),
		})
	}
	return out
}

func checkAnnotationRequests(p *pod) []finding {
	if p.proxy == nil {
		return nil
	}
	var set string
	for _, a := range resourceAnnotations {
		for _, key := range []string{a.request, a.limit} {
			if set == "" && p.hasAnnotation(key) {
				set = key
			}
		}
	}
	if set == "" {
		return nil
	}
	var out []finding
	for _, a := range resourceAnnotations {
		if p.hasAnnotation(a.request) || p.proxy.nestedField("resources", "requests", a.resource) != nil {
			continue
		}
		effect := fmt.Sprintf("neither a %s request nor a %s limit", a.resource, a.resource)
		if limit := p.proxy.nestedField("resources", "limits", a.resource); limit != nil {
			effect = fmt.Sprintf("a %s limit and no request, which Kubernetes sets to the limit (%v)", a.resource, limit)
		}
		out = append(out, finding{
			path: annotationPath(set), container: proxyName,
			message: fmt.Sprintf("%s is set without %s: the mesh's defaults are left out, and the proxy has %s", set, a.request, effect),
		})
	}
	return out
}

// checkRequestAboveLimit names the annotations of the proxy where they are the reason, and not each of the injected containers.
func checkRequestAboveLimit(p *pod) []finding {
	var out []finding
	for _, a := range resourceAnnotations {
		request, isRequest := quantityOf(p.annotations[a.request])
		limit, isLimit := quantityOf(p.annotations[a.limit])
		if isRequest && isLimit && request.Cmp(limit) > 0 {
			out = append(out, finding{
				path: annotationPath(a.request), current: p.annotations[a.request],
				message: fmt.Sprintf("annotation %s is %s, above %s, which is %s: the API server refuses the pod",
					a.request, foreign.Quote(p.annotations[a.request]), a.limit, foreign.Quote(p.annotations[a.limit])),
			})
		}
	}
	explained := len(out) > 0
	for _, f := range problemsOf(p, podvalidation.CodeAboveLimit) {
		if !explained || !slices.Contains(istioNames, f.container) {
			out = append(out, f)
		}
	}
	return out
}

// podLevelResources returns the resources of the pod as a whole, or nil if it has none that Kubernetes reads at pod
// level, or if the Kubernetes in question is known not to read them yet: they are on by default from 1.34 on.
// Source: IsPodLevelResourcesSet in k8s.io/component-helpers/resource, and PodLevelResources in
// pkg/features/kube_features.go of Kubernetes.
func (p *pod) podLevelResources() map[string]any {
	if v, ok := parseVersion(p.in.Facts.KubernetesVersion); ok && v.isBeforeMinor(34) {
		return nil
	}
	own := podmap.MapAt(p.spec, "resources")
	for _, which := range []string{"requests", "limits"} {
		for name, value := range podmap.MapAt(own, which) {
			if value != nil && (name == "cpu" || name == "memory" || strings.HasPrefix(name, "hugepages-")) {
				return own
			}
		}
	}
	return nil
}

// podRequests reports whether the pod as a whole requests a resource. Kubernetes uses its limit as the request only if
// no container requests anything: otherwise their sum is the pod's request. Source: defaultPodRequests in
// pkg/apis/core/v1/defaults.go of Kubernetes.
func podRequests(p *pod, name string) bool {
	own := p.podLevelResources()
	if podmap.MapAt(own, "requests")[name] != nil {
		return true
	}
	return podmap.MapAt(own, "limits")[name] != nil && !slices.ContainsFunc(p.allContainers(), func(c container) bool {
		return hasResourceAmount(podmap.MapAt(c.fields, "resources"), "requests", name)
	})
}

// keepsRunning reports whether a container keeps running while the application runs.
func (c container) keepsRunning() bool { return !c.init || c.isNativeSidecar() }

func checkNoRequests(p *pod) []finding {
	annotated := slices.ContainsFunc(resourceAnnotations, func(a resourceAnnotation) bool { return p.hasAnnotation(a.request) || p.hasAnnotation(a.limit) })
	var out []finding
	for _, c := range p.allContainers() {
		if !p.injected[c.name] || !c.keepsRunning() || textOf(c.fields["image"]) == "" || c.name == proxyName && annotated {
			continue // an annotation of the proxy is PR402's to explain
		}
		var missing []string
		for _, name := range []string{"cpu", "memory"} {
			if !hasResourceAmount(podmap.MapAt(c.fields, "resources"), "requests", name) && !podRequests(p, name) {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			out = append(out, finding{
				path: c.path + ".resources", container: c.name,
				message: fmt.Sprintf("container %s requests no %s", c.name, strings.Join(missing, " and no ")),
			})
		}
	}
	return out
}

func checkQuantities(p *pod) []finding { return problemsOf(p, podvalidation.CodeQuantity) }

// checkPodResources reports what the injected containers ask for beyond the resources of the pod as a whole.
func checkPodResources(p *pod) []finding { return addedProblems(p, podvalidation.CodePodResources) }

func quantityOf(v any) (resource.Quantity, bool) {
	switch v.(type) {
	case string, int64, float64, int:
		q, err := quantity.Parse(fmt.Sprint(v))
		return q, err == nil
	}
	return resource.Quantity{}, false
}
