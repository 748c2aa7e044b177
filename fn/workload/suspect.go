// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// Suspect is what an object that is of no known kind looks like.
type Suspect struct {
	// Field is the field that holds a pod template, such as spec.template, or another field that creates pods, such
	// as spec.templates[0].
	Field string
	// Path is the field in the form of the policy's spec.workloads; empty if such an entry would not help.
	Path string
	// Wrong reports whether no cluster has the kind, as Kubernetes has none of that name in its own group.
	Wrong bool
	// Reason describes what was found, as a sentence without a full stop.
	Reason string
}

// Bounds of the search. Pod templates are a few levels deep.
const (
	maxSearchDepth = 12
	maxSearched    = 20_000
)

// notPods are the API groups whose objects contain pod templates and create no pods: policies that compare or patch
// them, and definitions of types. A group includes its subdomains.
var notPods = []string{
	"apiextensions.k8s.io", "admissionregistration.k8s.io", "kyverno.io", "gatekeeper.sh", "istio.io",
	"kustomize.config.k8s.io", "config.kubernetes.io",
	"prerig.dev", "pkg.crossplane.io",
}

// Suspicious finds a pod template in an object of a kind that the registry does not have: a map that is called
// template, podTemplate or the like, with a spec that lists containers with images. It returns nil if it finds
// none. It is called only for objects whose text has the words (see Hints).
func Suspicious(obj map[string]any) *Suspect {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	home := homeOf(kind)
	if kind == "" || !MayMakePods(apiVersion) && home == "" || IsRelease(apiVersion, kind) || isLocal(obj) {
		return nil
	}
	if group == "argoproj.io" && strings.Contains(kind, "Workflow") {
		return suspectWorkflow(obj, kind)
	}
	s := &templateSearch{}
	s.walkValue(nil, obj, 0)
	if s.at == nil {
		return nil
	}
	out := &Suspect{Field: FieldString(s.at), Path: pathOf(s.at)}
	out.Reason = fmt.Sprintf("the kind %s holds a pod template at %s and is not one that is known", kind, out.Field)
	if kinds := kindsOfKubernetes(group); len(kinds) > 0 {
		out.Path, out.Wrong = "", true
		out.Reason = fmt.Sprintf("Kubernetes has no kind %s in %s%s", kind, apiVersion, strict.DidYouMean(kind, kinds))
	} else if home != "" && !strings.Contains(group, ".") {
		out.Path, out.Wrong = "", true
		out.Reason = fmt.Sprintf("Kubernetes has no kind %s in %s, did you mean %s?", kind, apiVersion, home)
	}
	if group == "serving.knative.dev" {
		out.Path = ""
		out.Reason = fmt.Sprintf("the kind %s holds a part of a pod template at %s, out of which Knative makes the pods, and Knative refuses much of what injection adds; leave them to the cluster's webhook", kind, out.Field)
	}
	return out
}

// kindsOfKubernetes returns the workloads of a group of Kubernetes' own, which has no others: none of any other group.
func kindsOfKubernetes(group string) []string {
	switch group {
	case "apps":
		return []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}
	case "batch":
		return []string{"Job", "CronJob"}
	}
	return nil
}

// homeOf returns the API version of a kind of workloads of Kubernetes' own, or "".
func homeOf(kind string) string {
	for _, group := range []string{"apps", "batch"} {
		if slices.Contains(kindsOfKubernetes(group), kind) {
			return group + "/v1"
		}
	}
	return ""
}

// MayBeMisplaced reports whether an object has the kind of a workload of Kubernetes' own, and an API version of none.
func MayBeMisplaced(apiVersion, kind string) bool {
	return homeOf(kind) != "" && !strings.Contains(apiVersion, "/")
}

// IsRelease reports whether objects of a kind have a controller render something elsewhere, such as a chart: Flux's HelmReleases, and Argo
// CD's Applications. What looks like a pod template in them is a value of that.
func IsRelease(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == "helm.toolkit.fluxcd.io" && kind == "HelmRelease" ||
		group == "argoproj.io" && (kind == "Application" || kind == "ApplicationSet")
}

// MayMakePods reports whether objects of an API version are worth a look: not those of the core group, all of whose
// kinds are known, nor of groups that only talk about pods.
func MayMakePods(apiVersion string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	return grouped && !slices.ContainsFunc(notPods, func(g string) bool { return group == g || strings.HasSuffix(group, "."+g) })
}

// Hints are the texts that all objects have in which Suspicious can find something.
var Hints = []string{"image", "emplate"}

// isLocal reports whether an object is not meant for a cluster.
func isLocal(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return annotations[annotationLocalConfig] == "true"
}

// suspectWorkflow reports Argo's workflows, whose templates have containers but are not pod templates.
func suspectWorkflow(obj map[string]any, kind string) *Suspect {
	spec, _ := obj["spec"].(map[string]any)
	at := []any{"spec"}
	if inner, ok := spec["workflowSpec"].(map[string]any); ok {
		spec, at = inner, append(at, "workflowSpec")
	}
	templates, _ := spec["templates"].([]any)
	for i, e := range templates {
		t, _ := e.(map[string]any)
		for _, key := range []string{"container", "script", "containerSet"} {
			if _, ok := t[key].(map[string]any); ok {
				field := FieldString(append(at, "templates", i))
				return &Suspect{Field: field, Reason: fmt.Sprintf("Argo makes the pods of the kind %s out of %s, which is no pod template; leave them to the cluster's webhook, or keep them out of the mesh", kind, field)}
			}
		}
	}
	return nil
}

// templateSearch looks for the first pod template in the order of the keys.
type templateSearch struct {
	at   []any
	seen int
}

func (s *templateSearch) walkValue(at []any, v any, depth int) {
	if s.seen++; s.at != nil || depth > maxSearchDepth || s.seen > maxSearched {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if len(at) > 0 && isTemplateKey(at) && holdsContainers(v) {
			s.at = at
			return
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			if k != "metadata" && k != "status" {
				s.walkValue(childPath(at, k), v[k], depth+1)
			}
		}
	case []any:
		for i, e := range v {
			s.walkValue(childPath(at, i), e, depth+1)
		}
	}
}

// isTemplateKey reports whether the place is called as pod templates are.
func isTemplateKey(at []any) bool {
	key, _ := at[len(at)-1].(string)
	return key == "template" || strings.HasSuffix(key, "Template") || strings.HasSuffix(key, "TemplateSpec")
}

// holdsContainers reports whether a map is a pod template: its spec has containers, each with a name or an image.
func holdsContainers(m map[string]any) bool {
	spec, _ := m["spec"].(map[string]any)
	list, _ := spec["containers"].([]any)
	images := false
	for _, e := range list {
		c, ok := e.(map[string]any)
		if !ok {
			return false
		}
		_, image := c["image"].(string)
		images = images || image
	}
	return images
}

// pathOf returns a position in the form of spec.workloads: an index of a list becomes all of its elements.
func pathOf(at []any) string {
	var p Path
	for _, e := range at {
		switch e := e.(type) {
		case string:
			if strings.ContainsAny(e, ".[]") {
				return ""
			}
			p.parts = append(p.parts, pathPart{key: e})
		default:
			if n := len(p.parts); n > 0 {
				p.parts[n-1].each = true
			}
		}
	}
	text := p.String()
	if _, err := ParsePath(text); err != nil {
		return ""
	}
	return text
}
