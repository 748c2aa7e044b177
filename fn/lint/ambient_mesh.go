// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// checkServiceMeshTwo is about control planes of OpenShift Service Mesh 2, which are Istio 1.6 to 1.20 without ambient mode.
func checkServiceMeshTwo(s *workloadSet) (out []setFinding) {
	for _, kind := range []string{"ServiceMeshControlPlane", "ServiceMeshMemberRoll", "ServiceMeshPeer"} {
		for _, o := range s.objects[kind] {
			out = append(out, o.newFinding("spec", "it is of OpenShift Service Mesh 2, which has no ambient mode: the labels have no effect"))
		}
	}
	return out
}

// checkManagedMeshes is about namespaces whose sidecars a provider runs.
func checkManagedMeshes(s *workloadSet) (out []setFinding) {
	for i := range s.namespaces {
		ns := &s.namespaces[i]
		provider, annotation, _ := ambient.ManagedMesh(ns.Labels, ns.Annotations)
		if provider == "" || annotation == "" || !ambient.EnrolledNamespace(ns.Labels) {
			continue // a namespace with the label of a revision is not in ambient mode
		}
		one := newNamespaceFinding(ns, "", ManagedMesh(provider))
		one.field = &result.Field{Path: annotationPath(annotation), CurrentValue: ns.Annotations[annotation]}
		out = append(out, one)
	}
	return out
}

// ManagedMesh is the message about a namespace in the mesh of a provider.
func ManagedMesh(provider string) string {
	return "its sidecars are those of " + provider + ", which has no ztunnel and no waypoints"
}

// ambientProfiles are the profiles of installations with ambient mode. Source: manifests/profiles of Istio.
var ambientProfiles = []string{"ambient", "openshift-ambient"}

// installation is an object that installs a part of Istio: by which chart or profile, and in which version.
type installation struct {
	*objectFacts
	field, chart, version string
}

// installations returns the charts that releases of Flux and applications of Argo CD install.
func installations(s *workloadSet) (out []installation) {
	for _, o := range s.objects["HelmRelease"] {
		chart := podmap.MapAt(o.spec, "chart", "spec")
		name := textOf(chart["chart"])
		if name == "" {
			name = textOf(podmap.MapAt(o.spec, "chartRef")["name"])
		}
		out = append(out, installation{o, "spec.chart.spec.chart", path.Base(name), textOf(chart["version"])})
	}
	for _, o := range s.objects["Application"] {
		source := podmap.MapAt(o.spec, "source")
		out = append(out, installation{o, "spec.source.chart", path.Base(textOf(source["chart"])), textOf(source["targetRevision"])})
		for i, source := range podmap.Maps(o.spec["sources"]) {
			out = append(out, installation{o, fmt.Sprintf("spec.sources[%d].chart", i), path.Base(textOf(source["chart"])), textOf(source["targetRevision"])})
		}
	}
	return out
}

// operated returns the installations by IstioOperators and by objects of the Sail operator, and whether one of them has ambient mode.
func operated(s *workloadSet) (out []installation, has bool) {
	for _, o := range s.objects["IstioOperator"] {
		profile := textOf(o.spec["profile"])
		ztunnel, _ := podmap.MapAt(o.spec, "components", "ztunnel")["enabled"].(bool)
		has = has || ztunnel || slices.Contains(ambientProfiles, profile)
		pilot, set := podmap.MapAt(o.spec, "components", "pilot")["enabled"].(bool)
		if profile != "remote" && (set && pilot || !set && profile != "empty") {
			out = append(out, installation{o, "spec.profile", "istiod", textOf(o.spec["tag"])})
		}
	}
	for _, o := range s.objects["Istio"] {
		has = has || slices.Contains(ambientProfiles, textOf(o.spec["profile"]))
		out = append(out, installation{o, "spec.profile", "istiod", textOf(o.spec["version"])})
	}
	return out, has || len(s.objects["ZTunnel"]) > 0
}

// checkInstallation is about control planes without the parts of ambient mode, or too old for it.
func checkInstallation(s *workloadSet) (out []setFinding) {
	all, has := operated(s)
	for _, one := range installations(s) {
		switch one.chart {
		case "ztunnel", "ambient":
			has = true
		case "istiod":
			all = append(all, one)
		}
	}
	for _, one := range all {
		v, known := parseVersion(one.version)
		switch {
		case known && v.isBeforeMinor(stableSince):
			out = append(out, one.newFinding(one.field, fmt.Sprintf("it installs Istio %s, and ambient mode is stable from 1.%d on", v, stableSince)))
		case !has:
			out = append(out, one.newFinding(one.field, "it installs no ambient mode, and no ztunnel is among the files: the labels have no effect without it"))
		}
	}
	return append(out, oldControlPlanes(s)...)
}

// oldControlPlanes are those that rendered manifests have, by the tag of their image.
func oldControlPlanes(s *workloadSet) (out []setFinding) {
	for i := range s.pods {
		pod := &s.pods[i]
		for _, c := range pod.containers {
			v, ok := parseVersion(imageTag(c.image))
			if c.name != "discovery" || !ok || !v.isBeforeMinor(stableSince) {
				continue
			}
			out = append(out, setFinding{
				ref: pod.ref, file: pod.file, ignored: pod.ignored, field: &result.Field{Path: c.path + ".image", CurrentValue: c.image},
				message: fmt.Sprintf("it is Istio %s, and ambient mode is stable from 1.%d on", v, stableSince),
			})
		}
	}
	return out
}

// checkInjectorExceptions is about pods that only the injector leaves out. Source: podutil.go and enablement_selector.go in cni/pkg/util of
// Istio, which do not read the injector's configuration.
func checkInjectorExceptions(s *workloadSet) (out []setFinding) {
	for _, kind := range []string{"IstioOperator", "Istio", "HelmRelease"} {
		for _, o := range s.objects[kind] {
			at := "spec.values.sidecarInjectorWebhook.neverInjectSelector"
			if len(podmap.Maps(podmap.MapAt(o.spec, "values", "sidecarInjectorWebhook")["neverInjectSelector"])) > 0 {
				out = append(out, o.newFinding(at, "it keeps pods out of the mesh, and ambient mode does not read it: their traffic is redirected"))
			}
		}
	}
	return out
}

// checkNetworkGateways is about gateways for other networks, which pass mutual TLS of sidecars by its SNI. Source:
// istio.io/docs/ambient/install/multicluster.
func checkNetworkGateways(s *workloadSet) (out []setFinding) {
	for _, g := range s.objects["Gateway"] {
		for i, server := range podmap.Maps(g.spec["servers"]) {
			if textOf(podmap.MapAt(server, "tls")["mode"]) == "AUTO_PASSTHROUGH" {
				out = append(out, g.newFinding(fmt.Sprintf("spec.servers[%d].tls.mode", i),
					"calls between networks pass this gateway by SNI, which those of ambient mode do not have"))
				break
			}
		}
	}
	return out
}

// sidecarMetrics are the metrics of requests, which ztunnel does not produce.
var sidecarMetrics = []string{"istio_requests_total", "istio_request_duration", "istio_request_bytes", "istio_response_bytes", "istio_request_messages", "istio_response_messages"}

// queryKinds are the kinds with queries of metrics.
var queryKinds = []string{"MetricTemplate", "PrometheusRule", "AnalysisTemplate", "ClusterAnalysisTemplate", "ScaledObject"}

// checkQueries is about queries for metrics of sidecars. Source: the standard metrics of istio.io/docs/reference/config/metrics, of which ztunnel
// has those of TCP, and a waypoint those of requests with the reporter waypoint.
func checkQueries(s *workloadSet) (out []setFinding) {
	for _, kind := range queryKinds {
		for _, o := range s.objects[kind] {
			forEachString(o.spec, "spec", func(at, text string) bool {
				if !slices.ContainsFunc(sidecarMetrics, func(name string) bool { return strings.Contains(text, name) }) {
					return false
				}
				message := `ztunnel produces no metrics of requests, and waypoints do with reporter="waypoint"`
				if strings.Contains(text, "reporter=") && !strings.Contains(text, "waypoint") || len(s.ambient.waypoints) == 0 {
					out = append(out, o.newFinding(at, message+": the query finds no request to pods of ambient mode"))
					return true
				}
				return false
			})
		}
	}
	return append(out, canaryQueries(s)...)
}

// canaryQueries are the built-in metrics of Flagger, which ask for reporter="destination". Source: pkg/metrics/observers/istio.go of Flagger.
func canaryQueries(s *workloadSet) []setFinding {
	return istioCanaries(s, func(o *objectFacts) []setFinding {
		for i, m := range podmap.Maps(podmap.MapAt(o.spec, "analysis")["metrics"]) {
			name := textOf(m["name"])
			if m["templateRef"] == nil && m["query"] == nil && (name == "request-success-rate" || name == "request-duration") {
				return []setFinding{o.newFinding(fmt.Sprintf("spec.analysis.metrics[%d].name", i),
					fmt.Sprintf(`Flagger reads %s of sidecars (reporter="destination"): for pods of ambient mode the analysis gets no values`, name))}
			}
		}
		return nil
	})
}

// istioCanaries calls do for Flagger's canaries in ambient mode that it routes by Istio, which is its default.
func istioCanaries(s *workloadSet, do func(*objectFacts) []setFinding) []setFinding {
	return s.ambient.each("Canary", func(o *objectFacts) []setFinding {
		if provider := textOf(o.spec["provider"]); provider != "" && provider != "istio" || !s.ambient.has(o.scope) {
			return nil
		}
		return do(o)
	})
}

// checkCanaries is about canaries whose Service has no waypoint. Flagger makes the Service, so that its labels are those of the namespace.
func checkCanaries(s *workloadSet) []setFinding {
	return istioCanaries(s, func(o *objectFacts) []setFinding {
		name := textOf(podmap.MapAt(o.spec, "service")["name"])
		if name == "" {
			name = textOf(podmap.MapAt(o.spec, "targetRef")["name"])
		}
		labels := map[string]string{}
		if service := s.serviceByName[o.scope+"\x00"+name]; service != nil {
			labels = service.labels()
		}
		if _, ok := s.ambient.waypointOf(labels, o.scope); ok {
			return nil
		}
		return []setFinding{o.newFinding("spec.service", fmt.Sprintf("Flagger writes a VirtualService for %s, whose weights have no effect: it has no waypoint", name))}
	})
}

// checkMonitors is about scrapes of sidecars, of which ztunnel and waypoints have other ports and names.
func checkMonitors(s *workloadSet) (out []setFinding) {
	for _, kind := range []string{"PodMonitor", "ServiceMonitor"} {
		for _, o := range s.objects[kind] {
			forEachString(o.spec, "spec", func(at, text string) bool {
				if strings.Contains(text, "istio-proxy") || strings.Contains(text, "envoy-prom") || strings.Contains(text, "/stats/prometheus") {
					out = append(out, o.newFinding(at, "it scrapes sidecars, which pods of ambient mode do not have"))
					return true
				}
				return false
			})
		}
	}
	return out
}
