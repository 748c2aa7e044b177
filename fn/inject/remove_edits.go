// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// handlerKinds are the ways in which a probe or a lifecycle handler calls the application, as far as an injection changes them.
var handlerKinds = []string{"httpGet", "tcpSocket", "grpc"}

// KeepEdits returns a record without the parts that would undo an edit made after the injection, and notes the
// doubts that remain. injected is the pod with the injection. found is the pod that the record is applied to, if
// that differs: without all of the injection that the pod itself reveals.
func KeepEdits(undo podmap.Undo, injected, found map[string]any) (podmap.Undo, []Note, error) {
	if undo.Patch == nil || undo.Exact {
		return undo, nil, nil
	}
	p, err := borrowPod(injected)
	if err != nil {
		return undo, nil, err
	}
	undo.Patch = podmap.CopyMap(undo.Patch)
	e := &edits{pod: p, found: found}
	e.probersByPath, e.readable = readProxy(p).originalProbers()
	spec, _ := undo.Patch["spec"].(map[string]any)
	for _, key := range []string{containersKey, initContainersKey} {
		list, _ := spec[key].([]any)
		for _, v := range list {
			if part, ok := v.(map[string]any); ok && part["name"] != proxyContainer {
				e.dropObsoleteProbeEdits(key, part)
			}
		}
	}
	if found != nil {
		e.keepOwnValues(undo.Patch)
	}
	return undo, e.unknown, nil
}

// edits compares a record with the pod that it is about.
type edits struct {
	pod *pod
	removalNotes
	found         map[string]any
	probersByPath map[string]map[string]any
	readable      bool
}

// dropObsoleteProbeEdits removes, from the part of a record about one container, what concerns a probe that is no
// longer the one the injection left.
func (e *edits) dropObsoleteProbeEdits(key string, part map[string]any) {
	name, _ := part["name"].(string)
	now := podmap.Find(e.pod.specListMaps(key), name)
	spec, _ := e.found["spec"].(map[string]any)
	list, _ := spec[key].([]any)
	found := podmap.Find(list, name)
	if now == nil {
		return // the merge leaves it out
	}
	for _, k := range checks {
		probe := k.probeOfContainer(part)
		if !slices.ContainsFunc(handlerKinds, func(kind string) bool { _, there := probe[kind]; return there }) {
			continue
		}
		field, path := k.containerFieldPath(key, name), fmt.Sprintf(k.path, name)
		switch {
		case httpPath(k.probeOfContainer(now)) != path:
			if e.wasRewritten(path, now, probe) {
				dropHandler(part, k)
			}
		case found != nil && httpPath(k.probeOfContainer(found)) == path && !hasOriginalProbe(probe):
			dropHandler(part, k) // the port alone would leave the agent's path beside it; leftAtAgent names the probe
		case found != nil:
			e.keepPortName(field, found, k.probeOfContainer(found), probe)
		}
	}
}

// probeOfContainer returns the probe or handler of a container, or of a patch of one, or nil if none exists.
func (k check) probeOfContainer(container map[string]any) map[string]any {
	holder := container
	if k.parent != "" {
		holder, _ = container[k.parent].(map[string]any)
	}
	probe, _ := holder[k.field].(map[string]any)
	return probe
}

// isAgentProbe reports whether a path is one under which the agent answers for some container.
func (k check) isAgentProbe(path string) bool {
	before, after, _ := strings.Cut(k.path, "%s")
	return strings.HasPrefix(path, before) && strings.HasSuffix(path, after)
}

// containerFieldPath returns the path of the probe or handler of a container.
func (k check) containerFieldPath(key, name string) string {
	field := k.field
	if k.parent != "" {
		field = k.parent + "." + field
	}
	return fmt.Sprintf("spec.%s[%s].%s", key, name, field)
}

// httpPath returns the path that a probe asks for by HTTP.
func httpPath(probe map[string]any) string {
	action, _ := probe["httpGet"].(map[string]any)
	path, _ := action["path"].(string)
	return path
}

// wasRewritten reports whether the injection had pointed the probe to the agent: the proxy answers for it, or would have to, if the
// record did not have a port name which the container does not know. Without that a template of the user's own may have set the probe.
func (e *edits) wasRewritten(path string, container, probe map[string]any) bool {
	if !e.readable || e.probersByPath[path] != nil {
		return true
	}
	for _, kind := range handlerKinds {
		action, _ := probe[kind].(map[string]any)
		if name, ok := action["port"].(string); ok {
			_, known := portNamed(container, name)
			return !known
		}
	}
	return false
}

// hasOriginalProbe reports whether the part of a record about a probe contains the value that the agent's path
// replaced.
func hasOriginalProbe(probe map[string]any) bool {
	v, there := probe["httpGet"]
	if action, ok := v.(map[string]any); ok {
		path, there := action["path"]
		return there && (path != nil || action["port"] != nil)
	}
	return there
}

// dropHandler removes what concerns a probe's handler from the part of a record.
func dropHandler(part map[string]any, k check) {
	probe := k.probeOfContainer(part)
	for _, kind := range handlerKinds {
		delete(probe, kind)
	}
	if len(probe) > 0 {
		return
	}
	if k.parent == "" {
		delete(part, k.field)
		return
	}
	holder, _ := part[k.parent].(map[string]any)
	if delete(holder, k.field); len(holder) == 0 {
		delete(part, k.parent)
	}
}

// keepPortName keeps the name of a port where the record has a number that is no longer the one of this port.
func (e *edits) keepPortName(field string, container, found, probe map[string]any) {
	for _, kind := range handlerKinds {
		recorded, _ := probe[kind].(map[string]any)
		action, _ := found[kind].(map[string]any)
		name, isName := action["port"].(string)
		number, isNumber := recorded["port"].(int64)
		now, known := portNamed(container, name)
		if isName && isNumber && known && int64(now) != number {
			delete(recorded, "port")
			e.recordUnknownValue(field+"."+kind+".port", fmt.Sprintf("it was %d, and the port %s of this number is %d now: the name was taken", number, name, now))
		}
	}
}

// keepOwnValues removes values from a record for labels and annotations whose value on the pod has changed since.
// An injection leaves the pod's own values alone unless they are empty, so any difference came later. If a template
// or the injected annotations of an installation do otherwise, the record is exact.
func (e *edits) keepOwnValues(patch map[string]any) {
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}} {
		recorded, found := mapUnder(patch, path), mapUnder(e.found, path)
		for key, v := range recorded {
			now, there := found[key]
			if there && v != nil && v != "" && keepsExistingMetadata(key) && !podmap.Equal(now, v) {
				delete(recorded, key)
			}
		}
	}
}

// mapUnder returns the map under a path of keys, or nil if none exists.
func mapUnder(m map[string]any, path []string) map[string]any {
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// keepsExistingMetadata reports whether an injection leaves a label or annotation alone that the pod has already. It
// changes the revision and the inbound ports that are left out.
func keepsExistingMetadata(key string) bool {
	switch key {
	case istioRevision, trafficPrefix + "excludeInboundPorts":
		return false
	}
	return isIstiosLabel(key) || slices.Contains(containerAnnotationNames, key) || key == interceptionAnnotation ||
		strings.HasPrefix(key, trafficPrefix) || strings.HasPrefix(key, prometheusPrefix)
}

// LeftAtAgent returns a note of each probe of a pod without injection that still points to the agent.
func LeftAtAgent(pod map[string]any) []Note {
	var out []Note
	spec, _ := pod["spec"].(map[string]any)
	for _, key := range []string{containersKey, initContainersKey} {
		list, _ := spec[key].([]any)
		for _, v := range list {
			c, _ := v.(map[string]any)
			name, _ := c["name"].(string)
			for _, k := range checks {
				if k.isAgentProbe(httpPath(k.probeOfContainer(c))) {
					out = append(out, Note{Field: k.containerFieldPath(key, name) + ".httpGet", Unrecorded: true,
						Reason: "it still points to the agent, and what it was is not known any more; set path and port again"})
				}
			}
		}
	}
	return out
}
