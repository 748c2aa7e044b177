// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// Namespace is one whose labels are known.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Annotations can suppress findings about the namespace itself.
	Annotations map[string]string
	File        *result.File
}

// Summary is what the rules on a set of workloads need of one pod. It is small, so that a large run can keep one for each.
type Summary struct {
	ref     result.ResourceRef
	file    *result.File
	ignored ignoredRules
	labels  map[string]string
	// ports are the numbers of the containers' named ports.
	ports map[string]int64
	// containers are all of the pod that run beside each other or before each other.
	containers []containerSummary
	// resources are those of the pod as a whole; see [pod.podLevelResources].
	resources map[string]any
	// field and image are those of the proxy's image, or empty without a proxy. sidecar reports whether the proxy
	// serves an application in the pod.
	field, image string
	proxy        bool
	sidecar      bool
	// template is the path of the pod template; replicas is what the workload sets beside it, or nil if unset.
	template string
	replicas *int64
	ending   ending
	// ambient reports whether ztunnel handles the pod's traffic; probed whether the kubelet probes it over the network.
	ambient, probed bool
	// substituted is injected text that Flux would replace, or nil if none exists.
	substituted *substituted
}

// containerSummary is what rules on a set need of a container.
type containerSummary struct {
	name, path string
	image      string
	injected   bool
	init       bool
	native     bool
	// resources is the container's field of that name.
	resources map[string]any
	// ports are the numbers of TCP ports of the user's own containers, with their names.
	ports []containerPort
}

type containerPort struct {
	number int64
	name   string
}

// HasProxy reports whether Istio's proxy is in the pod.
func (s Summary) HasProxy() bool { return s.proxy }

// Summarize returns the summary of a pod, or false if the input has no pod to check.
func Summarize(in Input) (Summary, bool) {
	p := newPod(&in)
	if p == nil {
		return Summary{}, false
	}
	s := Summary{
		ref:     result.ResourceRef{APIVersion: in.APIVersion, Kind: in.Kind, Name: in.Name, Namespace: in.Namespace},
		file:    in.File,
		ignored: p.suppressedByAnnotations(),
		labels:  p.labels,
		ports:   namedPorts(p.regular),
		sidecar: p.servesLocalApplication(),

		template: in.Field, replicas: in.Replicas, ending: endingOf(p), substituted: findSubstituted(p),

		containers: containerSummaries(p), resources: p.podLevelResources(), ambient: p.isAmbient(), probed: p.isProbed(),
	}
	if p.proxy != nil {
		s.proxy, s.image, s.field = true, textOf(p.proxy.fields["image"]), p.proxy.path+".image"
		if in.Field != "" {
			s.field = in.Field + "." + s.field
		}
	}
	return s, true
}

func containerSummaries(p *pod) []containerSummary {
	prefix := ""
	if p.in.Field != "" {
		prefix = p.in.Field + "."
	}
	out := make([]containerSummary, 0, len(p.inits)+len(p.regular))
	for _, c := range p.allContainers() {
		one := containerSummary{name: c.name, path: prefix + c.path, image: textOf(c.fields["image"]), injected: p.injected[c.name], init: c.init, native: c.isNativeSidecar()}
		one.resources, _ = c.fields["resources"].(map[string]any)
		if !one.injected && !c.init {
			for _, m := range podmap.Maps(c.fields["ports"]) {
				if n, ok := integerOf(m["containerPort"]); ok && (m["protocol"] == nil || textOf(m["protocol"]) == "TCP") {
					one.ports = append(one.ports, containerPort{n, textOf(m["name"])})
				}
			}
		}
		out = append(out, one)
	}
	return out
}

// namedPorts are the ports of the containers that have a name.
func namedPorts(regular []container) map[string]int64 {
	var out map[string]int64
	for _, c := range regular {
		list, _ := c.fields["ports"].([]any)
		for _, item := range list {
			m, _ := item.(map[string]any)
			if n, ok := integerOf(m["containerPort"]); ok && textOf(m["name"]) != "" {
				if out == nil {
					out = map[string]int64{}
				}
				out[textOf(m["name"])] = n
			}
		}
	}
	return out
}

// Surroundings are the objects beside the workloads that rules on a set read.
type Surroundings struct {
	Namespaces []Namespace
	// Objects are those of the kinds that [ReadsKind] knows.
	Objects []Object
	// RootNamespace is Istio's; empty means istio-system.
	RootNamespace string
	// IstioVersion is the control plane's, as that of [Facts]; empty means unknown.
	IstioVersion string
	// Authorizers are those that other objects show; nil means those of Objects.
	Authorizers *ambient.Authorizers
}

type workloadSet struct {
	pods          []Summary
	namespaces    []Namespace
	services      []*serviceFacts
	serviceByName map[string]*serviceFacts // by scope and name
	objects       map[string][]*objectFacts
	index         *podIndex
	root, istio   string
	ambient       *ambientSet
	authorizers   *ambient.Authorizers
}

func newSet(pods []Summary, around Surroundings) *workloadSet {
	s := &workloadSet{pods: pods, namespaces: slices.Clone(around.Namespaces), objects: map[string][]*objectFacts{}, root: around.RootNamespace, istio: around.IstioVersion, authorizers: around.Authorizers}
	if s.root == "" {
		s.root = "istio-system"
	}
	sort.SliceStable(s.namespaces, func(i, j int) bool { return s.namespaces[i].Name < s.namespaces[j].Name })
	if len(around.Objects) == 0 {
		s.ambient = newAmbientSet(s)
		return s
	}
	s.index = newPodIndex(pods)
	s.serviceByName = map[string]*serviceFacts{}
	for _, o := range around.Objects {
		facts := newObjectFacts(o)
		if o.Kind != "Service" {
			key := objectKey(o.APIVersion, o.Kind)
			s.objects[key] = append(s.objects[key], facts)
			continue
		}
		service := newServiceFacts(facts, s.index)
		s.services = append(s.services, service)
		s.serviceByName[facts.scope+"\x00"+o.Name] = service
	}
	s.ambient = newAmbientSet(s)
	return s
}

type setFinding struct {
	ref     result.ResourceRef
	file    *result.File
	field   *result.Field
	message string
	ignored ignoredRules
	// container is the one that the field is in.
	container string
	// unsure reports whether something that the finding depends on is unknown, and minor whether it hardly matters here: it is
	// one level less severe than its rule.
	unsure, minor bool
}

// CheckSet runs the rules that inspect all workloads of a run together, and returns their findings and those that
// are suppressed. Results are in the order of the rules' codes, then of the namespaces' names, then of the pods and
// objects in the input.
func CheckSet(pods []Summary, around Surroundings, sev Severities) (found, suppressed result.Results) {
	s := newSet(pods, around)
	for i := range rules {
		r := &rules[i]
		level := sev.severityOfRule(r)
		if r.checkSet == nil || level == "" || r.concernsSet != nil && !r.concernsSet(s) {
			continue
		}
		for _, f := range r.checkSet(s) {
			if f.unsure && sev.sure {
				continue
			}
			one := f.newResult(r, level)
			if reason, ok := sev.suppressionOfFinding(r, f.ignored, f.ref); ok {
				one.Tags[TagReason] = reason
				suppressed = append(suppressed, one)
				continue
			}
			found = append(found, one)
		}
	}
	return found, suppressed
}

func (f setFinding) newResult(r *Rule, level result.Severity) result.Result {
	if f.unsure || f.minor {
		level = nextLowerSeverity(level)
	}
	out := result.Result{
		Message: f.message, Severity: level, ResourceRef: &f.ref, Field: f.field, File: f.file,
		Tags: map[string]string{result.TagCode: r.Code},
	}
	if f.container != "" {
		out.Tags[TagContainer] = f.container
	}
	return out
}

// nextLowerSeverity is one level less severe.
func nextLowerSeverity(level result.Severity) result.Severity {
	if level == result.Error {
		return result.Warning
	}
	return result.Info
}

func checkNamespaceLabels(s *workloadSet) []setFinding {
	var out []setFinding
	for _, ns := range s.namespaces {
		injection, ok1 := ns.Labels["istio-injection"]
		revision, ok2 := ns.Labels["istio.io/rev"]
		if !ok1 || !ok2 || injection == "disabled" { // explicit, whatever the revision
			continue
		}
		out = append(out, setFinding{
			ref:     result.ResourceRef{APIVersion: "v1", Kind: "Namespace", Name: ns.Name},
			file:    ns.File,
			ignored: parseIgnoredRules(ns.Annotations),
			field:   &result.Field{Path: labelPath("istio.io/rev"), CurrentValue: revision},
			message: fmt.Sprintf("the namespace has istio-injection=%s and istio.io/rev=%s: the revision has no effect", injection, revision),
		})
	}
	return out
}

// checkAmbientLabels leaves out istio.io/rev, which in ambient mode names the revision of waypoints and ztunnel.
// Source for what ambient mode leaves alone: PodRedirectionEnabled in cni/pkg/util/podutil.go of Istio.
func checkAmbientLabels(s *workloadSet) []setFinding {
	var out []setFinding
	for _, ns := range s.namespaces {
		if ns.Labels["istio.io/dataplane-mode"] != "ambient" || ns.Labels["istio-injection"] != "enabled" {
			continue
		}
		out = append(out, setFinding{
			ref:     result.ResourceRef{APIVersion: "v1", Kind: "Namespace", Name: ns.Name},
			file:    ns.File,
			ignored: parseIgnoredRules(ns.Annotations),
			field:   &result.Field{Path: labelPath("istio.io/dataplane-mode"), CurrentValue: "ambient"},
			message: "the namespace has istio.io/dataplane-mode=ambient and istio-injection=enabled: its pods get sidecars, and ambient mode leaves them alone",
		})
	}
	return out
}

// checkNamespaceVersions reports, for each namespace with several versions, the pods that do not have the one that most have.
func checkNamespaceVersions(s *workloadSet) []setFinding {
	byNamespace := map[string][]Summary{}
	for _, pod := range s.pods {
		if pod.ref.Namespace == "" || !pod.proxy {
			continue // not known to be in one namespace
		}
		byNamespace[pod.ref.Namespace] = append(byNamespace[pod.ref.Namespace], pod)
	}
	var out []setFinding
	for _, name := range sortedKeys(byNamespace) {
		pods := byNamespace[name]
		count := map[string]int{}
		for _, pod := range pods {
			count[proxyRelease(pod.image)]++
		}
		if len(count) < 2 {
			continue
		}
		common := mostCommon(count)
		for _, pod := range pods {
			release := proxyRelease(pod.image)
			if release == common {
				continue
			}
			out = append(out, setFinding{
				ref: pod.ref, file: pod.file, ignored: pod.ignored, container: proxyName,
				field:   &result.Field{Path: pod.field, CurrentValue: pod.image},
				message: fmt.Sprintf("the proxy is %s, and %d of %d proxies in namespace %s are %s", foreign.Text(release, foreign.MaxValue), count[common], len(pods), name, foreign.Text(common, foreign.MaxValue)),
			})
		}
	}
	return out
}

// proxyRelease returns the part that has to be equal: the tag without the kind of image, or the whole image.
func proxyRelease(image string) string {
	tag := imageTag(image)
	if tag == "" {
		return image
	}
	return strings.TrimSuffix(strings.TrimSuffix(tag, "-distroless"), "-debug")
}

// mostCommon returns the release that most have, and the one that sorts last among equals.
func mostCommon(count map[string]int) string {
	var best string
	for _, release := range sortedKeys(count) {
		if best == "" || count[release] >= count[best] {
			best = release
		}
	}
	return best
}
