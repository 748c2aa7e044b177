// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// removeContainers removes the injected containers and restores those of the user that they covered.
func (r *removal) removeContainers(own overrides) {
	for _, key := range []string{containersKey, initContainersKey} {
		for _, name := range r.writer.status.containersForKey(key) {
			if mine := podmap.Find(own.containersForKey(key), name); mine != nil {
				r.restoreUserContainer(key, name, mine)
				continue
			}
			if r.canRemoveContainer(key, name) {
				r.pod.setOrDrop(key, r.writer.removeOneNamed(r.pod.specListMaps(key), name))
			}
		}
	}
}

// canRemoveContainer reports whether a container that the status annotation lists is known to be injected: it is one of
// Istio's, or a template that the pod or the configuration names adds it.
func (r *removal) canRemoveContainer(key, name string) bool {
	if isIstioContainer(name) || name == bootstrapContainer || podmap.Find(r.pod.specListMaps(key), name) == nil {
		return true
	}
	if r.req.All || r.writer.custom || r.req.Names != nil && r.req.Names(name) {
		r.listed = append(r.listed, name)
		return true
	}
	r.recordUnknownValue("spec."+key+"["+name+"]", "it stays, although the annotation "+statusAnnotation+" lists it as injected: none of Istio's templates has it, and no other template is known that does; take it out if it was injected")
	return false
}

// removeOneNamed returns a list without the element of a name. From Istio 1.9 the name is unique; before, the injected
// one is nearest to where it was added, which is the end, except for istio-validation, which comes first in most
// versions and identifies itself.
func (w *writer) removeOneNamed(list []any, name string) []any {
	if !w.appended {
		return podmap.Without(list, name)
	}
	named := func(e any) bool { return hasName(e, name) }
	at := slices.IndexFunc(list, named)
	if name == validationContainer {
		if i := slices.IndexFunc(list, func(e any) bool { return named(e) && isValidationContainer(e) }); i >= 0 {
			at = i
		}
	} else {
		for i, e := range list {
			if named(e) {
				at = i
			}
		}
	}
	if at < 0 {
		return list
	}
	return slices.Delete(slices.Clone(list), at, at+1)
}

// isValidationContainer reports whether an init container does what the one of Istio's templates does: look whether the
// redirection that the CNI plugin sets up works.
func isValidationContainer(e any) bool {
	c, _ := e.(map[string]any)
	for _, key := range []string{"command", "args"} {
		if list, _ := c[key].([]any); slices.Contains(list, any("--run-validation")) {
			return true
		}
	}
	return false
}

// hasName reports whether an element of a list has a name.
func hasName(e any, name string) bool {
	m, _ := e.(map[string]any)
	return m["name"] == name
}

// restoreUserContainer replaces an injected container by the user's own of the same name.
func (r *removal) restoreUserContainer(key, name string, own map[string]any) {
	list := r.pod.specListMaps(key)
	to := key
	if key == initContainersKey && name == proxyContainer && own["restartPolicy"] == nil && !r.mustKeepField("spec."+containersKey) {
		to = containersKey // injection moved it
	}
	if r.mustKeepField("spec." + key + "[" + name + "]") {
		own = withMatchingZeros(own, podmap.Find(list, name))
	}
	if isIstioContainer(name) {
		r.pod.setOrDrop(key, podmap.Without(list, name))
		r.pod.spec[to] = append(r.pod.specListMaps(to), own)
		if len(r.pod.specListMaps(to)) > 1 {
			r.recordAssumption("spec."+to, fmt.Sprintf("the container %s of the pod's own was put last; where it was cannot be known", name))
		}
		return
	}
	for i, e := range list {
		if m, _ := e.(map[string]any); m["name"] == name {
			list[i] = own
		}
	}
}

// withMatchingZeros returns a container with the zeros that the injected one has in the same places. The overrides
// annotation omits them, so whether the user had written them is unknown.
func withMatchingZeros(own, injected map[string]any) map[string]any {
	out := podmap.CopyMap(own)
	for key, v := range injected {
		mine, there := out[key]
		switch v := v.(type) {
		case int64:
			if v == 0 && !there {
				out[key] = v
			}
		case map[string]any:
			if m, ok := mine.(map[string]any); ok {
				out[key] = withMatchingZeros(m, v)
			}
		}
	}
	return out
}

// isIstioContainer reports whether a container of that name is Istio's, so that injection decides its position.
func isIstioContainer(name string) bool {
	switch name {
	case proxyContainer, initContainer, validationContainer, coreDumpContainer:
		return true
	default:
		return false
	}
}
