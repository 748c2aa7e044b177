// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/podmap"
)

// The injection works on the pod as the API server hands it to the webhook, with all defaults. The output is the
// pod as the user wrote it with the injection's changes: a default that the injection left unchanged is omitted,
// because the API server sets it again. If the API server would then set a different value, as with the pull policy
// of an image that the injection changed, the value is written.

// admittedPod returns a copy of the pod as the webhook sees it.
func admittedPod(server admission.Server, p *pod) *pod {
	out := p.deepCopy()
	applyAdmissionDefaults(server, out)
	return out
}

// applyAdmissionDefaults sets in a pod what the API server sets before it calls the webhook.
func applyAdmissionDefaults(server admission.Server, p *pod) {
	server.Default(map[string]any{"spec": p.spec})
	nameAccount(p)
}

// removeDefaultedFields removes the defaults from an injected pod again. user is the pod as the user wrote it, seen is
// the same pod as the webhook saw it, and injected is the result of the injection. user and seen are not modified;
// the result shares memory with injected.
func removeDefaultedFields(server admission.Server, user map[string]any, seen, injected *pod) *pod {
	w := &defaultRemoval{}
	if account, ok := injected.spec["serviceAccount"]; ok && injected.spec["serviceAccountName"] == nil {
		// A template that removes the name leaves the old field, which means the same.
		injected.spec["serviceAccountName"] = account
	}
	meta, _ := user["metadata"].(map[string]any)
	spec, _ := user["spec"].(map[string]any)
	out := &pod{extra: injected.extra, meta: injected.meta, spec: injected.spec}
	if !podmap.Same(seen.meta, injected.meta) {
		out.meta = w.removeMapDefaults(podmap.PodSchema().Field("metadata").Schema, meta, seen.meta, injected.meta)
	} else if meta != nil {
		out.meta = podmap.CopyMap(meta)
	}
	if !podmap.Same(seen.spec, injected.spec) {
		out.spec = w.removePodSpecDefaults(spec, seen.spec, injected.spec)
	} else {
		out.spec = podmap.CopyMap(spec)
	}
	if w.unsure {
		writeChangedDefaults(server, out, injected)
	}
	return out
}

// withoutReplacedElements returns the pod as the user wrote it and as the webhook saw it, both without the list
// elements that the injection replaced. Their replacements belong to the template alone: none of their fields is a
// default that the user left to the API server, even if the element had the same name, or was identical. If omitted,
// such a default would appear when the pod is injected again, because by then the element that it could have been a
// default of no longer exists.
func withoutReplacedElements(
	replaced map[string][]string, written map[string]any, admitted *pod,
) (map[string]any, *pod) {
	if len(replaced) == 0 {
		return written, admitted
	}
	strip := func(spec map[string]any) map[string]any {
		out := maps.Clone(spec)
		for key, names := range replaced {
			if list, ok := spec[key].([]any); ok {
				out[key] = podmap.WithoutNames(list, names)
			}
		}
		return out
	}
	user := maps.Clone(written)
	spec, _ := user["spec"].(map[string]any)
	user["spec"] = strip(spec)
	return user, &pod{meta: admitted.meta, spec: strip(admitted.spec), extra: admitted.extra}
}

// writeChangedDefaults writes what the API server would default otherwise than in the injected pod.
func writeChangedDefaults(server admission.Server, out, injected *pod) {
	want, got := admittedPod(server, injected), admittedPod(server, out)
	if !podmap.Same(got.spec, want.spec) {
		out.spec = podmap.CopyMap(out.spec)
		restoreExplicitValues(out.spec, got.spec, want.spec)
	}
}

// restoreExplicitValues sets in a map what comes out of it otherwise than wanted.
func restoreExplicitValues(m, got, want map[string]any) {
	for key, v := range want {
		if podmap.Same(got[key], v) {
			continue
		}
		if _, there := got[key]; !there {
			m[key] = podmap.CopyValue(v)
			continue
		}
		m[key] = setUnequalValue(m[key], got[key], v)
	}
	for key := range got {
		if _, wanted := want[key]; !wanted {
			delete(m, key)
		}
	}
}

// setUnequalValue returns a value in which what comes out otherwise than wanted is set.
func setUnequalValue(v, got, want any) any {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		m, _ := v.(map[string]any)
		if m == nil {
			m = map[string]any{}
		}
		if ok {
			restoreExplicitValues(m, g, want)
			return m
		}
	case []any:
		g, ok := got.([]any)
		l, here := v.([]any)
		if ok && here && len(l) == len(want) && len(g) == len(want) {
			for i := range want {
				if !podmap.Same(g[i], want[i]) {
					l[i] = setUnequalValue(l[i], g[i], want[i])
				}
			}
			return l
		}
	}
	return podmap.CopyValue(want)
}

// defaultRemoval removes defaults from values.
type defaultRemoval struct {
	// unsure reports whether something that a default depends on has changed.
	unsure bool
}

// removePodSpecDefaults removes the defaults from the pod's spec.
func (w *defaultRemoval) removePodSpecDefaults(user, seen, injected map[string]any) map[string]any {
	for _, key := range []string{"resources", "serviceAccountName", "serviceAccount", "hostNetwork"} {
		// The requests of the whole pod hang on those of all containers, and the ports of containers on the pod's network.
		if injected[key] != nil && (key == "resources" || !podmap.Same(seen[key], injected[key])) {
			w.unsure = true
		}
	}
	out := w.removeMapDefaults(podmap.PodSchema().Field("spec").Schema, user, seen, injected)
	w.removeMovedProxyDefaults(out, user, seen, injected)
	return out
}

// removeMovedProxyDefaults removes the defaults from the pod's own istio-proxy if the injection has moved it to the
// init containers.
func (w *defaultRemoval) removeMovedProxyDefaults(out, user, seen, injected map[string]any) {
	list, _ := injected[initContainersKey].([]any)
	before, _ := seen[containersKey].([]any)
	own, _ := user[containersKey].([]any)
	from := podmap.Find(before, proxyContainer)
	to := podmap.Find(list, proxyContainer)
	inits, _ := seen[initContainersKey].([]any)
	containers, _ := injected[containersKey].([]any)
	if from == nil || to == nil || podmap.Find(inits, proxyContainer) != nil || podmap.Find(containers, proxyContainer) != nil {
		return
	}
	w.recordDefaultInput("Container", from, to)
	slim := w.removeMapDefaults(podmap.ContainerSchema(), podmap.Find(own, proxyContainer), from, to)
	next := make([]any, 0, len(list))
	have, _ := out[initContainersKey].([]any)
	for _, e := range have {
		if m, _ := e.(map[string]any); m["name"] == proxyContainer {
			e = slim
		}
		next = append(next, e)
	}
	out[initContainersKey] = next
}

// removeMapDefaults removes the defaults from a map that the injection changed. user may be nil.
func (w *defaultRemoval) removeMapDefaults(s *podmap.Schema, user, seen, injected map[string]any) map[string]any {
	out := make(map[string]any, len(injected))
	for key, v := range injected {
		before, was := seen[key]
		mine, wrote := user[key]
		switch {
		case !was:
			out[key] = v
		case !podmap.Same(before, v):
			out[key] = w.removeValueDefaults(s.Field(key), mine, before, v)
		case wrote:
			out[key] = podmap.CopyValue(mine)
		}
	}
	return out
}

// removeValueDefaults removes the defaults from a value that the injection changed.
func (w *defaultRemoval) removeValueDefaults(f *podmap.SchemaField, user, seen, injected any) any {
	if f == nil {
		f = &podmap.SchemaField{Schema: podmap.UnknownSchema}
	}
	switch injected := injected.(type) {
	case map[string]any:
		if before, ok := seen.(map[string]any); ok {
			mine, _ := user.(map[string]any)
			return w.removeMapDefaults(f.Schema, mine, before, injected)
		}
	case []any:
		if before, ok := seen.([]any); ok {
			mine, _ := user.([]any)
			return w.removeListDefaults(f, mine, before, injected)
		}
	}
	return injected
}

// removeListDefaults removes the defaults from the elements of a list. Elements without a key are matched only if they
// are equal.
func (w *defaultRemoval) removeListDefaults(f *podmap.SchemaField, user, seen, injected []any) []any {
	out := make([]any, 0, len(injected))
	used := make([]bool, len(seen))
	for _, e := range injected {
		i, equal := findCounterpart(f, seen, used, e)
		switch {
		case i < 0:
			out = append(out, e)
			continue
		case equal && i < len(user):
			out = append(out, podmap.CopyValue(user[i]))
		case equal:
			// The API server adds elements only to an empty list, which this one is not any more.
			out = append(out, e)
		default:
			before, _ := seen[i].(map[string]any)
			now, _ := e.(map[string]any)
			var mine map[string]any
			if i < len(user) {
				mine, _ = user[i].(map[string]any)
			}
			w.recordDefaultInput(f.Schema.Elem.TypeName, before, now)
			out = append(out, w.removeMapDefaults(f.Schema.Elem, mine, before, now))
		}
		used[i] = true
	}
	return out
}

// recordDefaultInput notes a change that defaults depend on: the pull policy depends on the image, requests on limits,
// and the source of a volume on the absence of any other.
func (w *defaultRemoval) recordDefaultInput(kind string, seen, injected map[string]any) {
	switch kind {
	case "Container":
		w.unsure = w.unsure || !podmap.Same(seen["image"], injected["image"]) || !podmap.Same(seen["resources"], injected["resources"])
	case "Volume":
		w.unsure = true
	}
}

// findCounterpart finds the former version of a list element. It returns the index, or -1, and whether the two are
// equal. If several have its key, an equal one is preferred.
func findCounterpart(f *podmap.SchemaField, seen []any, used []bool, e any) (int, bool) {
	for i, before := range seen {
		if !used[i] && podmap.Same(before, e) {
			return i, true
		}
	}
	m, ok := e.(map[string]any)
	if !ok || f.MergeKey == "" || m[f.MergeKey] == nil {
		return -1, false
	}
	for i, before := range seen {
		if b, ok := before.(map[string]any); ok && !used[i] && podmap.Same(b[f.MergeKey], m[f.MergeKey]) {
			return i, false
		}
	}
	return -1, false
}
