// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// RemoveRequest is one pod to take an injection out of.
type RemoveRequest struct {
	// Pod has the keys metadata and spec. It is not changed.
	Pod map[string]any
	// Owner is the workload that the pod belongs to; its name distinguishes an injected label from the pod's own.
	Owner workload.Owner
	// Names reports whether an available configuration has a template that names a container; nil if no
	// configuration is available. A container that the status annotation lists, and that is neither Istio's nor
	// named by a template, stays.
	Names func(container string) bool
	// All removes all containers that the status annotation lists, as the webhook does, if an injection wrote it.
	All bool
	// Bare reports whether the pod is a standalone Pod, which has no record of what the pod itself does not show.
	// Then a rewritten probe gets the number of its port, even if the container has a name for it, and no path if
	// it is / and the API server's defaults were filled in. Otherwise the name is used and / is written, so that a
	// record of the difference is rarely needed; both mean the same.
	Bare bool
	// Doubtful also removes what an injection may have set, if it is unknown whether the injection that wrote the
	// pod did. Injecting into the result shows whether it is needed.
	Doubtful bool
	// Keep leaves fields in place that may have been the pod's own, also where injection is known to set them to this value.
	// Injecting into the result again shows whether taking them out is needed at all.
	Keep Keep
}

// Keep reports whether removing leaves a field, by the path of its note, in place as that which may have been the pod's own. Without
// one, what an injection is known to set to the value that it has is taken out.
type Keep func(field string) bool

// KeepAll leaves all.
func KeepAll(string) bool { return true }

// KeepMost leaves all but Prometheus annotations that point to the agent.
func KeepMost(field string) bool {
	return !strings.HasPrefix(field, "metadata.annotations["+prometheusPrefix)
}

// KeepOnly leaves one field.
func KeepOnly(kept string) Keep {
	return func(field string) bool { return field == kept }
}

// Removed is a pod without injection.
type Removed struct {
	// Pod is the pod as it was before it was injected, as far as that can be determined. It shares no memory with
	// the request.
	Pod map[string]any
	// Injected reports that the pod had been injected. Where it had not, Pod is a copy of the request's.
	Injected bool
	// Exact reports that the pod comes from its record and is what it was to the last field.
	Exact bool
	// Assumed lists the fields that were removed, or set to one of two equivalent values, because the injection
	// sets them to this value whether or not the pod has them: the pod may have had the same value before.
	Assumed []Note
	// Unknown lists the fields whose original state cannot be determined: those that stay although an injection may
	// have set them, and those whose former value is lost.
	Unknown []Note
	// Listed are the containers that were taken out because the status annotation lists them, and that none of Istio's own
	// templates has: a template that the pod or the configuration names added them.
	Listed []string
}

// Unsettled are those notes that remain where a record of the workload was applied, which gave the original.
func (r Removed) Unsettled(original map[string]any) []Note {
	out := LeftAtAgent(original)
	for _, n := range r.Unknown {
		if n.Unrecorded && !slices.ContainsFunc(out, func(o Note) bool { return o.Field == n.Field }) {
			out = append(out, n)
		}
	}
	return out
}

// Note is about one field of a pod.
type Note struct {
	// Field is its path, such as spec.containers[app].livenessProbe.httpGet.port, and Reason a sentence without a full stop.
	Field, Reason string
	// Unrecorded reports whether the workload's record cannot answer it either. Such a note counts even if the pod
	// does not change: what remains in the pod may have to be removed.
	Unrecorded bool
	// Hint reports whether the field is most likely correct as it is.
	Hint bool
}

// String is the field and the reason.
func (n Note) String() string { return n.Field + ": " + n.Reason }

// Remove removes an injection of any version of Istio from a pod: by the record that RecordOriginal left in it, or
// otherwise by what every injection leaves (the status annotation, the probes and Prometheus settings in the
// proxy's environment, the user's own containers in an annotation) and by what the version that wrote it is known
// to set. A field for which that is unknown stays. A pod with a status annotation that no injection can have
// written is left alone.
func Remove(req RemoveRequest) (Removed, error) {
	p, err := borrowPod(req.Pod)
	if err != nil {
		return Removed{}, err
	}
	if out, ok, err := restoreRecord(p); ok || err != nil {
		return out, err
	}
	if _, ok := p.annotation(statusAnnotation); !ok {
		p.copyBorrowedContainers()
		return Removed{Pod: p.toPodObject()}, nil
	}
	w, ok := readWriter(p, req.Names)
	if !ok {
		p.copyBorrowedContainers()
		return Removed{Pod: p.toPodObject()}, nil
	}
	r := &removal{pod: p, req: req, writer: w, proxy: readProxy(p), removalNotes: removalNotes{keep: req.Keep}}
	if err := r.removeInjection(); err != nil {
		return Removed{}, err
	}
	return Removed{Pod: p.toPodObject(), Injected: true, Assumed: r.assumed, Unknown: r.unknown, Listed: r.listed}, nil
}

// removal removes one injection.
type removal struct {
	pod    *pod
	req    RemoveRequest
	writer *writer
	proxy  injectedProxy
	removalNotes
	listed []string
}

// removalNotes are what the steps of a removal note, and what they are to leave in place.
type removalNotes struct {
	keep             Keep
	assumed, unknown []Note
}

// recordAssumption notes a field that has two possible former values which mean the same.
func (r *removalNotes) recordAssumption(field, reason string) {
	r.assumed = append(r.assumed, Note{Field: field, Reason: reason})
}

// takeKnownField reports whether to take out a field that the injection is known to set to the value that it has, and
// notes it.
func (r *removalNotes) takeKnownField(field, reason string) bool {
	if r.mustKeepField(field) {
		return false
	}
	r.recordAssumption(field, reason)
	return true
}

// mustKeepField reports whether a field stays in place, as it may have been the pod's own.
func (r *removalNotes) mustKeepField(field string) bool { return r.keep != nil && r.keep(field) }

func (r *removalNotes) recordUnknownValue(field, reason string) {
	r.unknown = append(r.unknown, Note{Field: field, Reason: reason})
}

// recordUnknowableValue is recordUnknownValue for facts that no record contains either.
func (r *removalNotes) recordUnknowableValue(field, reason string) {
	r.unknown = append(r.unknown, Note{Field: field, Reason: reason, Unrecorded: true})
}

func (r *removal) removeInjection() error {
	s := &r.writer.status
	lost := r.proxy.container == nil && slices.Contains(slices.Concat(s.Containers, s.InitContainers), proxyContainer)
	r.writer.detectVersion(r.pod, r.proxy)
	own, err := overridesOf(r.pod)
	if err != nil {
		return err
	}
	own.addNulls(r.pod)
	r.recordDiscardedValues()
	r.noteOpenShift(own)
	for _, list := range [][]any{own.Containers, own.InitContainers} {
		for i := range list {
			list[i] = userOverrideContainer(r.pod, list[i])
		}
	}
	r.removeContainers(own)
	r.pod.copyBorrowedContainers()
	probes := probeRestorer{pod: r.pod, proxy: r.proxy, removalNotes: &r.removalNotes, bare: r.req.Bare}
	probes.restoreProbes()
	r.removeVolumes()
	r.removePullSecrets()
	r.restoreSecurity()
	r.restoreDNS()
	annotations := annotationRestorer{pod: r.pod, writer: r.writer, proxy: r.proxy, removalNotes: &r.removalNotes}
	annotations.restoreAnnotations()
	r.restoreLabels()
	if lost {
		// Records omit what the proxy itself reveals, so they cannot supply it.
		for i := range r.unknown {
			r.unknown[i].Unrecorded = true
		}
	}
	return nil
}

// recordDiscardedValues notes the fields whose former values Istio up to 1.8 discards.
func (r *removal) recordDiscardedValues() {
	if !r.writer.appended {
		return
	}
	const reason = "if the pod had %s of its own, Istio up to 1.8 overwrote it, and it cannot be restored"
	r.recordAssumption("spec.containers", fmt.Sprintf(reason, "a container istio-proxy"))
	r.recordAssumption("spec.initContainers", fmt.Sprintf(reason, "a container istio-init or enable-core-dump"))
}

// sharedUsers is the start of the user ID range that OpenShift assigns to namespaces.
const sharedUsers = 1_000_000

// noteOpenShift notes that the user ID of the pod's own proxy settings is lost if it was the namespace's.
func (r *removal) noteOpenShift(own overrides) {
	context, _ := r.proxy.container["securityContext"].(map[string]any)
	user, _ := context["runAsUser"].(int64)
	for key, list := range map[string][]any{containersKey: own.Containers, initContainersKey: own.InitContainers} {
		if user >= sharedUsers && podmap.Find(list, proxyContainer) != nil {
			r.recordUnknownValue("spec."+key+"[istio-proxy].securityContext", "on OpenShift injection takes out the user and group that the cluster gave to the namespace")
		}
	}
}

// userOverrideContainer returns a container of a pod's overrides annotation as the user wrote it.
func userOverrideContainer(p *pod, noted any) any {
	injected := p.findContainerNamed(noted)
	return withoutTypedZeros(ownAsWritten(withRestoredImage(noted, injected), injected))
}

// withoutTypedZeros returns a container of the overrides annotation without what Go's types print.
func withoutTypedZeros(v any) any {
	c, _ := v.(map[string]any)
	c = podmap.CopyMap(c)
	if resources, ok := c["resources"].(map[string]any); ok && len(resources) == 0 {
		delete(c, "resources")
	}
	env, _ := c["env"].([]any)
	for _, e := range env {
		m, _ := e.(map[string]any)
		if ref, ok := resourceFieldRef(m); ok && ref["divisor"] == "0" {
			delete(ref, "divisor")
		}
	}
	return c
}
