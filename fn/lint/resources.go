// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/podvalidation"
	"github.com/prerig/prerig/fn/result"
)

var resourceRules = []Rule{
	{
		Code: "PR401", Title: "Proxy without a limit because of an annotation", Severity: result.Warning, Audience: Applications,
		Why: "As soon as one of sidecar.istio.io/proxyCPU, proxyMemory, proxyCPULimit and proxyMemoryLimit is set, the mesh's default resources are " +
			"left out as a whole. With proxyCPU or proxyMemory alone the proxy has no limit: it may use all of the node, and with no CPU limit it starts one " +
			"worker thread for each core of the node.",
		Change: "Set the limit next to the request: sidecar.istio.io/proxyCPULimit with proxyCPU, sidecar.istio.io/proxyMemoryLimit with proxyMemory.",
		Issues: []string{"istio.io/docs/setup/additional-setup/sidecar-injection"},
		check:  checkAnnotationLimits,
	},
	{
		Code: "PR402", Title: "Proxy loses a default request because of an annotation", Severity: result.Info, Audience: Applications,
		Why: "The same annotations leave out the mesh's default requests too. With a limit and no request, Kubernetes sets the request to the limit, " +
			"which reserves far more than was meant; with neither, the scheduler counts the proxy as nothing.",
		Change: "Set sidecar.istio.io/proxyCPU and sidecar.istio.io/proxyMemory as well.",
		check:  checkAnnotationRequests,
	},
	{
		Code: "PR403", Title: "Request above limit", Severity: result.Error,
		Why: "The API server refuses a pod in which a container requests more than its limit. It often comes from an annotation or an istio-proxy container " +
			"that sets one of the two while the other comes from the mesh's defaults. The error then shows only on the ReplicaSet.",
		Change: "Set both, with the request not above the limit.",
		check:  checkRequestAboveLimit,
	},
	{
		Code: "PR404", Title: "Sidecar without requests", Severity: result.Warning, Mesh: true,
		Why: "A sidecar that requests nothing makes the pod burstable at best, does not count for the scheduler, and breaks a HorizontalPodAutoscaler on " +
			"utilisation, which needs a request of every container. A ResourceQuota refuses the pod. Where the pod as a whole requests the resource " +
			"(spec.resources, from Kubernetes 1.34 on), its containers need not.",
		Change: "Set requests: values.global.proxy.resources, or the annotations sidecar.istio.io/proxyCPU and proxyMemory with their limits.",
		check:  checkNoRequests,
	},
	{
		Code: "PR405", Title: "Quantity that cannot be read", Severity: result.Error,
		Why:    "The API server refuses a pod whose resources are not quantities of Kubernetes.",
		Change: "Write the quantity as Kubernetes does, such as 100m or 128Mi.",
		check:  checkQuantities,
	},
	{
		Code: "PR410", Title: "Injected containers exceed the pod's own resources", Severity: result.Error, Audience: Applications,
		Why: "A pod can have resources as a whole (spec.resources, by default from Kubernetes 1.34 on). The API server refuses it where its containers request more " +
			"together, or where one of them has a higher limit. An injected sidecar counts as the application's own containers do.",
		Change: "Raise spec.resources by what the sidecar asks for, or lower that: sidecar.istio.io/proxyCPU and proxyMemory, with their limits.",
		Issues: []string{"kubernetes/enhancements#1592", "kumahq/kuma#17588"},
		check:  checkPodResources,
	},
}

// resourceAnnotation are the two annotations that set a resource of the proxy.
type resourceAnnotation struct{ resource, request, limit string }

var resourceAnnotations = []resourceAnnotation{
	{"cpu", "sidecar.istio.io/proxyCPU", "sidecar.istio.io/proxyCPULimit"},
	{"memory", "sidecar.istio.io/proxyMemory", "sidecar.istio.io/proxyMemoryLimit"},
}

func (p *pod) has(annotation string) bool {
	_, ok := p.annotations[annotation]
	return ok
}

func checkAnnotationLimits(p *pod) []finding {
	if p.proxy == nil {
		return nil
	}
	var out []finding
	for _, a := range resourceAnnotations {
		if !p.has(a.request) || p.proxy.field("resources", "limits", a.resource) != nil {
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
			if set == "" && p.has(key) {
				set = key
			}
		}
	}
	if set == "" {
		return nil
	}
	var out []finding
	for _, a := range resourceAnnotations {
		if p.has(a.request) || p.proxy.field("resources", "requests", a.resource) != nil {
			continue
		}
		effect := fmt.Sprintf("neither a %s request nor a %s limit", a.resource, a.resource)
		if limit := p.proxy.field("resources", "limits", a.resource); limit != nil {
			effect = fmt.Sprintf("a %s limit and no request, which Kubernetes sets to the limit (%v)", a.resource, limit)
		}
		out = append(out, finding{
			path: annotationPath(set), container: proxyName,
			message: fmt.Sprintf("%s is set without %s: the mesh's defaults are left out, and the proxy has %s", set, a.request, effect),
		})
	}
	return out
}

func checkRequestAboveLimit(p *pod) []finding { return p.problemsOf(podvalidation.CodeAboveLimit) }

// ownResources returns the resources of the pod as a whole, or nil if it has none that Kubernetes reads at pod
// level, or if the Kubernetes in question is known not to read them yet: they are on by default from 1.34 on.
// Source: IsPodLevelResourcesSet in k8s.io/component-helpers/resource, and PodLevelResources in
// pkg/features/kube_features.go of Kubernetes.
func (p *pod) ownResources() map[string]any {
	if v, ok := parseVersion(p.in.Facts.KubernetesVersion); ok && v.before(34) {
		return nil
	}
	own := mapAt(p.spec, "resources")
	for _, which := range []string{"requests", "limits"} {
		for name, value := range mapAt(own, which) {
			if value != nil && (name == "cpu" || name == "memory" || strings.HasPrefix(name, "hugepages-")) {
				return own
			}
		}
	}
	return nil
}

// requests reports whether the pod as a whole requests a resource. Kubernetes uses its limit as the request only if
// no container requests anything: otherwise their sum is the pod's request. Source: defaultPodRequests in
// pkg/apis/core/v1/defaults.go of Kubernetes.
func (p *pod) requests(name string) bool {
	own := p.ownResources()
	if mapAt(own, "requests")[name] != nil {
		return true
	}
	return mapAt(own, "limits")[name] != nil && !slices.ContainsFunc(p.all(), func(c container) bool {
		return says(mapAt(c.fields, "resources"), "requests", name)
	})
}

// runsOn reports whether a container keeps running while the application runs.
func (c container) runsOn() bool { return !c.init || c.native() }

func checkNoRequests(p *pod) []finding {
	annotated := slices.ContainsFunc(resourceAnnotations, func(a resourceAnnotation) bool { return p.has(a.request) || p.has(a.limit) })
	var out []finding
	for _, c := range p.all() {
		if !p.injected[c.name] || !c.runsOn() || textOf(c.fields["image"]) == "" || c.name == proxyName && annotated {
			continue // an annotation of the proxy is PR402's to explain
		}
		var missing []string
		for _, name := range []string{"cpu", "memory"} {
			if !says(mapAt(c.fields, "resources"), "requests", name) && !p.requests(name) {
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

func checkQuantities(p *pod) []finding { return p.problemsOf(podvalidation.CodeQuantity) }

// checkPodResources reports what the injected containers ask for beyond the resources of the pod as a whole.
func checkPodResources(p *pod) []finding { return p.addedProblems(podvalidation.CodePodResources) }

func quantityOf(v any) (resource.Quantity, bool) {
	switch v.(type) {
	case string, int64, float64, int:
		q, err := resource.ParseQuantity(fmt.Sprint(v))
		return q, err == nil
	}
	return resource.Quantity{}, false
}
