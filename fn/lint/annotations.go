// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
)

// istioKey reports whether an annotation's domain is istio.io or below it.
func istioKey(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && (domain == "istio.io" || strings.HasSuffix(domain, ".istio.io"))
}

// ownIstioAnnotations returns the annotations of the pod in Istio's domains that the injector did not write, in order.
func ownIstioAnnotations(p *pod) []string {
	before, _ := p.in.Before["metadata"].(map[string]any)
	given := stringMap(before["annotations"])
	var out []string
	for _, key := range sortedKeys(p.annotations) {
		if !istioKey(key) {
			continue
		}
		if _, ok := given[key]; !ok && p.in.Before != nil {
			continue
		}
		out = append(out, key)
	}
	return out
}

func checkMisplaced(p *pod) []finding {
	var out []finding
	for _, key := range ownIstioAnnotations(p) {
		a, ok := annotations[key]
		if ok && len(a.on) > 0 && !slices.Contains(a.on, "Pod") {
			out = append(out, finding{
				path:    annotationPath(key),
				message: fmt.Sprintf("annotation %s belongs on %s and has no effect on a pod", key, strings.Join(a.on, " or ")),
			})
		}
	}
	for _, key := range sortedKeys(p.in.ObjectAnnotations) {
		a, ok := annotations[key]
		if !ok || len(a.on) == 0 || p.annotations[key] == p.in.ObjectAnnotations[key] || slices.Contains(a.on, p.in.Kind) {
			continue
		}
		message := fmt.Sprintf("annotation %s has no effect on a %s: it belongs on %s", key, p.in.Kind, strings.Join(a.on, " or "))
		if slices.Contains(a.on, "Pod") {
			message = fmt.Sprintf("annotation %s has no effect on the metadata of a %s: it belongs in %s.metadata", key, p.in.Kind, p.in.Field)
		}
		out = append(out, finding{object: true, path: annotationPath(key), current: p.in.ObjectAnnotations[key], message: message})
	}
	out = append(out, misplacedOfOthers(p)...)
	return append(out, misplacedLabels(p)...)
}

// podDomains are annotations, or the beginnings of their names, that injectors other than Istio's read on pods, and some on namespaces, but not
// on workloads. Jaeger's operator is not among them: it reads its annotation on Deployments.
var podDomains = []string{
	"dapr.io/", "vault.hashicorp.com/", "linkerd.io/inject", "config.linkerd.io/", "config.alpha.linkerd.io/", "instrumentation.opentelemetry.io/",
	"sidecar.opentelemetry.io/", "consul.hashicorp.com/connect-", "consul.hashicorp.com/transparent-proxy", "consul.hashicorp.com/envoy-",
	"consul.hashicorp.com/sidecar-proxy-", "kuma.io/sidecar-", "appmesh.k8s.aws/", "fluentbit.io/", "admission.datadoghq.com/", "ad.datadoghq.com/",
	"openservicemesh.io/", "azure.workload.identity/inject-proxy-", "azure.workload.identity/proxy-sidecar-port", "azure.workload.identity/skip-containers",
	"gke-gcsfuse/", "conjur.org/", "akeyless/", "oneagent.dynatrace.com/", "vault.security.banzaicloud.io/", "telegraf.influxdata.com/",
	"operator.1password.io/inject", "org.infisical.com/inject", "injector.nsm.nginx.com/", "config.nsm.nginx.com/",
}

// podLabels are labels that injectors other than Istio's select pods by.
var podLabels = []string{
	"admission.datadoghq.com/enabled", "agent.datadoghq.com/sidecar", "azure.workload.identity/use", "kuma.io/sidecar-injection",
}

// misplacedOfOthers is about sidecars that are not Istio's: those that are known, and those of the policies.
func misplacedOfOthers(p *pod) []finding {
	if p.in.Field == "" {
		return nil // a Pod has no other metadata
	}
	var out []finding
	for _, key := range sortedKeys(p.in.ObjectAnnotations) {
		own, there := p.annotations[key]
		known := slices.ContainsFunc(podDomains, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		if !known || there && own == p.in.ObjectAnnotations[key] {
			continue
		}
		out = append(out, newMisplaced(p.in, "annotation", key, ""))
	}
	for _, key := range podLabels {
		own, there := p.labels[key]
		if value, set := p.in.ObjectLabels[key]; set && !(there && own == value) {
			out = append(out, newMisplaced(p.in, "label", key, ""))
		}
	}
	for _, m := range p.in.Misplaced {
		known := slices.ContainsFunc(podDomains, func(prefix string) bool { return strings.HasPrefix(m.Key, prefix) }) || istioKey(m.Key)
		switch {
		case m.Label && slices.Contains(podLabels, m.Key):
		case m.Label:
			out = append(out, newMisplaced(p.in, "label", m.Key, m.Sidecar))
		case !known:
			out = append(out, newMisplaced(p.in, "annotation", m.Key, m.Sidecar))
		}
	}
	return out
}

// newMisplaced is about a label or annotation of the workload's own metadata. The sidecar is that of a policy which reads it on pods.
func newMisplaced(in *Input, what, key, sidecar string) finding {
	f := finding{object: true, path: annotationPath(key), current: in.ObjectAnnotations[key]}
	if what == "label" {
		f.path, f.current = labelPath(key), in.ObjectLabels[key]
	}
	f.message = fmt.Sprintf("%s %s has no effect on the metadata of a %s: it belongs in %s.metadata", what, key, in.Kind, in.Field)
	if sidecar != "" {
		f.message += ", where sidecar " + sidecar + " reads it"
	}
	return f
}

func misplacedLabels(p *pod) []finding {
	var out []finding
	const inject, namespace = "sidecar.istio.io/inject", "istio-injection"
	if v, ok := p.in.ObjectLabels[inject]; ok && p.labels[inject] != v {
		out = append(out, finding{
			object: true, path: labelPath(inject), current: v,
			message: fmt.Sprintf("label %s has no effect on the metadata of a %s: it belongs in %s.metadata", inject, p.in.Kind, p.in.Field),
		})
	}
	if v, ok := p.in.ObjectLabels[namespace]; ok {
		out = append(out, finding{
			object: true, path: labelPath(namespace), current: v,
			message: fmt.Sprintf("label %s has no effect on a %s: it belongs on the namespace", namespace, p.in.Kind),
		})
	}
	if v, ok := p.labels[namespace]; ok {
		out = append(out, finding{
			path: labelPath(namespace), current: v,
			message: fmt.Sprintf("label %s has no effect on a pod: it belongs on the namespace, and %s is the label of a pod", namespace, inject),
		})
	}
	return out
}

func checkUnknown(p *pod) []finding {
	var out []finding
	report := func(key string, object bool) {
		message := unknownAnnotation(key)
		if message == "" || !istioKey(key) {
			return
		}
		out = append(out, finding{object: object, path: annotationPath(key), message: message})
	}
	for _, key := range ownIstioAnnotations(p) {
		report(key, false)
	}
	for _, key := range sortedKeys(p.in.ObjectAnnotations) {
		if _, ok := p.annotations[key]; !ok {
			report(key, true)
		}
	}
	return out
}

// unknownAnnotation describes what is wrong with an unknown key in Istio's domains, or returns "" if it is known.
func unknownAnnotation(key string) string {
	if _, ok := annotations[key]; ok {
		return ""
	}
	message := fmt.Sprintf("annotation %s is not one of Istio's", key)
	if near := nearestName(key); near != "" {
		message += "; did you mean " + near + "?"
	}
	return message
}

// istioComponent is the label of what Istio's own charts and operator make.
const istioComponent = "operator.istio.io/component"

// checkDeprecated skips Istio's own manifests, which users do not edit.
func checkDeprecated(p *pod) []finding {
	if p.labels[istioComponent] != "" || p.in.ObjectLabels[istioComponent] != "" {
		return nil
	}
	plane, known := parseVersion(p.in.Facts.IstioVersion)
	var out []finding
	for _, key := range ownIstioAnnotations(p) {
		a := annotations[key]
		_, labelled := p.labels[key] // the label that is to replace the annotation exists
		if a.deprecated == "" || labelled || known && plane.isBeforeMinor(deprecatedSince[key]) {
			continue
		}
		out = append(out, finding{
			path: annotationPath(key), current: p.annotations[key],
			message: fmt.Sprintf("annotation %s is deprecated; use %s", key, a.deprecated),
		})
	}
	return out
}

func checkAlpha(p *pod) []finding {
	var out []finding
	for _, key := range ownIstioAnnotations(p) {
		if a := annotations[key]; a.status == alpha && a.deprecated == "" && key != statusAnnotation {
			out = append(out, finding{
				path: annotationPath(key), current: p.annotations[key],
				message: fmt.Sprintf("annotation %s is alpha", key),
			})
		}
	}
	return out
}

func checkVersionOfAnnotation(p *pod) []finding {
	plane, ok := parseVersion(p.in.Facts.IstioVersion)
	if !ok {
		return nil
	}
	var out []finding
	for _, key := range ownIstioAnnotations(p) {
		a := annotations[key]
		var message string
		switch {
		case a.since > 0 && plane.isBeforeMinor(a.since):
			message = fmt.Sprintf("annotation %s has no effect on Istio %s: it is known from 1.%d on", key, plane, a.since)
		case a.until > 0 && !plane.isBeforeMinor(a.until+1):
			message = fmt.Sprintf("annotation %s has no effect on Istio %s: 1.%d was the last to know it", key, plane, a.until)
		default:
			continue
		}
		out = append(out, finding{path: annotationPath(key), current: p.annotations[key], message: message})
	}
	return out
}

// nearestName returns the known annotation that is at most a few letters away, or "" if none is.
func nearestName(key string) string {
	best, distance := "", max(3, len(key)/8)+1
	for _, known := range sortedKeys(annotations) {
		if d := editDistance(strings.ToLower(key), strings.ToLower(known), distance); d < distance {
			best, distance = known, d
		}
	}
	return best
}

// editDistance is Levenshtein's, cut off at the limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
