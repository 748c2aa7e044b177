// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/strict"
)

// Labels and names that steps write.
const (
	injectionLabel = "istio-injection"
	revisionLabel  = "istio.io/rev"
	injectKey      = "sidecar.istio.io/inject"
	sidecarValue   = "istio" // of ambient.SidecarLabel
	dryRun         = "istio.io/dry-run"
	// copyOf is the annotation of copies with targetRefs, with the name of the policy that they are of.
	copyOf      = "prerig.dev/ambient-copy-of"
	copySuffix  = "-waypoint"
	onlySuffix  = "-waypoint-only"
	waypointTag = "waypoint"
)

// moving returns the namespaces that move, in order: those that are named, or that have sidecars by a label or in a file.
func (t *tree) moving() []string {
	if len(t.options.Namespaces) > 0 {
		return slices.Sorted(slices.Values(t.options.Namespaces))
	}
	found := map[string]bool{}
	for _, o := range t.objects {
		if o.key() == "Namespace" && (o.labels[injectionLabel] == "enabled" || o.labels[revisionLabel] != "" || o.labels[ambient.DataplaneMode] == ambient.Ambient) {
			found[o.name] = true
		}
		for _, template := range slices.Concat(o.templates, o.custom) {
			if hasSidecar(template.Pod) || podmap.StringMap(podmap.MapAt(template.Pod, "metadata", "labels"))[injectKey] == "true" {
				found[o.namespace] = true
			}
		}
	}
	delete(found, t.options.RootNamespace)
	delete(found, "kube-system")
	return podmap.SortedKeys(found)
}

// checkNamespaces returns an error for a namespace that is asked for and that no file has.
func checkNamespaces(t *tree) error {
	known := map[string]bool{}
	for _, o := range t.objects {
		known[o.namespace] = true
		if o.key() == "Namespace" {
			known[o.name] = true
		}
	}
	delete(known, "")
	for _, name := range t.options.Namespaces {
		if !known[name] {
			there := podmap.SortedKeys(known)
			has := "; the files name no namespace"
			if len(there) > 0 {
				has = "; the files have " + strings.Join(there[:min(len(there), 10)], ", ")
			}
			return fmt.Errorf("planning the move: no file has the namespace %s of --only%s%s", name, strict.DidYouMean(name, there), has)
		}
	}
	return nil
}

// Readable prepares files for being changed. Those that cannot be read in full are left out, with the namespaces that they have objects of: a
// policy that no step has read must not be left behind. It is an error if no namespace is left, and if objects name none.
func Readable(files []File, o *Options, broken []string) (whole []File, warnings []string, err error) {
	t, err := readTree(files, *o)
	if err != nil {
		return nil, nil, err
	}
	if err := checkNamespaces(t); err != nil {
		return nil, nil, err
	}
	if without := withoutNamespace(t); without != "" {
		return nil, nil, fmt.Errorf("writing the steps: %s, so that the steps would leave out what belongs to a namespace; set --namespace, or name the directory of one namespace", without)
	}
	left := t.moving()
	if len(left) == 0 {
		return nil, nil, errors.New("writing the steps: no file shows that a namespace has sidecars; name those that move with --only")
	}
	if len(broken) == 0 {
		return files, nil, nil
	}
	for _, f := range files {
		if !slices.Contains(broken, f.Path) {
			whole = append(whole, f)
		}
	}
	for _, name := range broken {
		warnings = append(warnings, name+" cannot be read in full, and is left as it is")
	}
	for _, o := range t.objects {
		if i := slices.Index(left, o.namespace); i >= 0 && slices.Contains(broken, t.files[o.file].Path) {
			warnings = append(warnings, fmt.Sprintf("%s has objects of namespace %s, which does not move therefore", t.files[o.file].Path, o.namespace))
			left = slices.Delete(left, i, i+1)
		}
	}
	if len(left) == 0 {
		return nil, nil, fmt.Errorf("writing the steps: %s", strings.Join(warnings, "; "))
	}
	o.Namespaces = left
	return whole, warnings, nil
}

// unknownNamespaces returns the namespaces with workloads or policies whose Namespace is not among the files, and which no manifest shows to have
// sidecars.
func unknownNamespaces(t *tree) (out []string) {
	moving := t.moving()
	for _, name := range podmap.SortedKeys(t.of) {
		if name == "" || name == t.options.RootNamespace || name == "kube-system" || t.namespaceObject(name) != nil || slices.Contains(moving, name) {
			continue
		}
		if slices.ContainsFunc(t.of[name], func(o *object) bool { return isOfMesh(o) }) {
			out = append(out, name)
		}
	}
	return out
}

// isOfMesh reports whether an object is a workload, or one of Istio or of the network, which a move can concern.
func isOfMesh(o *object) bool {
	return !o.isCluster && (len(o.templates) > 0 || strings.HasSuffix(o.group, "istio.io") || o.kind == "NetworkPolicy")
}

// withoutNamespace describes the workloads, policies and routes that name no namespace, "" if there are none.
func withoutNamespace(t *tree) string {
	var found []*object
	for _, o := range t.objects {
		if o.namespace == "" && isOfMesh(o) {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return ""
	case 1:
		return found[0].String() + " names no namespace"
	}
	return fmt.Sprintf("%s and %d more objects name no namespace", found[0], len(found)-1)
}

// hasSidecar reports whether a pod has Istio's proxy beside an application.
func hasSidecar(pod map[string]any) bool {
	if text(podmap.MapAt(pod, "metadata", "annotations")["sidecar.istio.io/status"]) == "" || isGateway(pod) {
		return false
	}
	spec := podmap.MapAt(pod, "spec")
	return slices.ContainsFunc(append(podmap.Maps(spec["containers"]), podmap.Maps(spec["initContainers"])...), func(c map[string]any) bool {
		return text(c["name"]) == "istio-proxy"
	})
}

// isGateway reports whether the injector makes a pod a gateway, which keeps its proxy.
func isGateway(pod map[string]any) bool {
	return text(podmap.MapAt(pod, "metadata", "annotations")["inject.istio.io/templates"]) == "gateway"
}

// namespaceObject returns the Namespace among the files, or nil.
func (t *tree) namespaceObject(name string) *object {
	if found := t.index[[2]string{name, "Namespace"}]; len(found) > 0 {
		return found[0]
	}
	return nil
}

// in returns the objects of a kind in a namespace.
func (t *tree) in(namespace, key string) []*object {
	return slices.Clip(t.index[[2]string{namespace, key}])
}

// workloads returns the pod templates of a namespace, with the object of each.
func (t *tree) workloads(namespace string) (out []podOf) {
	for _, o := range t.of[namespace] {
		for _, template := range o.templates {
			if host, _ := podmap.MapAt(template.Pod, "spec")["hostNetwork"].(bool); !host && !isGateway(template.Pod) {
				out = append(out, podOf{o, podmap.StringMap(podmap.MapAt(template.Pod, "metadata", "labels")), podmap.MapAt(template.Pod, "spec")})
			}
		}
	}
	return out
}

// podOf is a pod template.
type podOf struct {
	*object
	podLabels map[string]string
	podSpec   map[string]any
}

// services returns the Services of a namespace that select pods and have an address, which calls by a waypoint need.
func (t *tree) services(namespace string) (out []*object) {
	for _, s := range t.in(namespace, "Service") {
		if len(podmap.MapAt(s.spec, "selector")) > 0 && ambient.HasAddress(s.spec) {
			out = append(out, s)
		}
	}
	return out
}

// selected returns the pods of a namespace that a Service selects.
func (t *tree) selected(service *object) (out []podOf) {
	selector := podmap.StringMap(service.spec["selector"])
	for _, p := range t.workloads(service.namespace) {
		if hasLabels(p.podLabels, selector) {
			out = append(out, p)
		}
	}
	return out
}

// waypointName is the name of the waypoint of a namespace: the one of its label, or the usual.
func (t *tree) waypointName(namespace string) ambient.Reference {
	if ns := t.namespaceObject(namespace); ns != nil {
		if ref, _ := ambient.WaypointOf(ns.labels, namespace); ref.Name != "" {
			return ref
		}
	}
	return ambient.Reference{Namespace: namespace, Name: waypointTag}
}

// needsWaypoint returns the first object for which a namespace needs a waypoint, or nil.
func (t *tree) needsWaypoint(namespace string) *object {
	for _, o := range t.of[namespace] {
		if t.isLayer7(o) {
			return o
		}
	}
	for _, other := range podmap.SortedKeys(relationsOf(t).of[namespace]) {
		for _, o := range t.in(other, virtualServices) {
			if routesTo(t, o, namespace) {
				return o
			}
		}
	}
	for _, o := range rootPolicies(t, namespace) {
		action := ambient.Action(o.spec)
		if o.key() != authorizationPolicies || len(ambient.Layer7Fields(o.spec)) > 0 || action == "CUSTOM" || action == "AUDIT" {
			return o
		}
	}
	return nil
}

// isMeshWide reports whether a policy of the root namespace is for all pods of the mesh.
func isMeshWide(o *object) bool {
	return len(withoutSidecarLabel(selectorOf(o))) == 0 && len(ambient.Targets(o.spec)) == 0
}

// isForClass reports whether all waypoints enforce one copy of a policy of the root namespace: ports differ by Service.
func isForClass(o *object) bool { return isMeshWide(o) && len(ambient.PortFields(o.spec)) == 0 }

// selectorOf returns the labels that a policy selects pods by.
func selectorOf(o *object) map[string]string {
	return podmap.StringMap(podmap.MapAt(o.spec, "selector")["matchLabels"])
}

// isLayer7 reports whether an object of a namespace needs a waypoint there.
func (t *tree) isLayer7(o *object) bool {
	switch o.key() {
	case authorizationPolicies:
		action := ambient.Action(o.spec)
		needs := len(ambient.Layer7Fields(o.spec)) > 0 || action == "CUSTOM" || action == "AUDIT"
		if localAuthorizer(t, o) != "" {
			return isForWaypoint(t, o)
		}
		return needs && (isForWaypoint(t, o) || t.appliesToPods(o)) || o.annotations[copyOf] != ""
	case requestAuthentications, wasmPlugins:
		return isForWaypoint(t, o) || t.appliesToPods(o)
	case virtualServices:
		return routesTo(t, o, o.namespace)
	case destinationRules: // subsets have an effect by a VirtualService
		return isServed(t, o, text(o.spec["host"]), o.namespace) && ambient.NeedsProxy(podmap.MapAt(o.spec, "trafficPolicy"))
	case canaries:
		provider := text(o.spec["provider"])
		return provider == "" || provider == "istio"
	case httpRoutes:
		return slices.ContainsFunc(podmap.Maps(o.spec["parentRefs"]), func(p map[string]any) bool { return text(p["kind"]) == "Service" })
	}
	return false
}

// isForWaypoint reports whether a policy names what a waypoint serves.
func isForWaypoint(t *tree, o *object) bool {
	return slices.ContainsFunc(ambient.Targets(o.spec), func(r ambient.TargetReference) bool {
		return r.Kind == "Service" || r.Kind == "ServiceEntry" || r.Kind == "Gateway" && r.Name == t.waypointName(o.namespace).Name
	})
}

// appliesToPods reports whether a policy is for pods that move, and not for gateways only.
func (t *tree) appliesToPods(o *object) bool {
	if len(ambient.Targets(o.spec)) > 0 {
		return false
	}
	selector := withoutSidecarLabel(selectorOf(o))
	if len(selector) == 0 {
		return true
	}
	if ambient.SelectsGateway(selector) {
		return false
	}
	if o.namespace != t.options.RootNamespace && len(t.workloads(o.namespace)) == 0 {
		return true // the pods are elsewhere
	}
	return slices.ContainsFunc(t.workloads(o.namespace), func(p podOf) bool { return hasLabels(p.podLabels, selector) })
}

func withoutSidecarLabel(selector map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range selector {
		if k != ambient.SidecarLabel {
			out[k] = v
		}
	}
	return out
}
