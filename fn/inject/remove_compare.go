// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"reflect"
)

// compare takes out what the configuration that injected the pod would set by itself: it leaves out one label, annotation
// or setting at a time, injects, and looks whether the same comes back.
func (r *removal) compare(req RemoveRequest, injected *pod) {
	for _, kind := range []string{"annotations", "labels"} {
		for _, name := range sortedNames(stringMap(r.pod.meta[kind])) {
			if kind == "annotations" && r.certain[name] {
				continue
			}
			candidate := r.pod.copy()
			candidate.unset(kind, name)
			got := r.again(req, candidate)
			if got == nil {
				continue
			}
			want, _ := stringIn(injected.meta[kind], name)
			if v, ok := stringIn(got.meta[kind], name); ok && v == want {
				r.pod.unset(kind, name)
				r.assume(fmt.Sprintf("metadata.%s[%s]", kind, name), "the configuration sets it to this value")
			}
		}
		r.dropEmpty(kind)
	}
	for _, key := range []string{"dnsConfig", "securityContext"} {
		if _, ok := r.pod.spec[key]; !ok {
			continue
		}
		candidate := r.pod.copy()
		delete(candidate.spec, key)
		if got := r.again(req, candidate); got != nil && reflect.DeepEqual(got.spec[key], injected.spec[key]) {
			delete(r.pod.spec, key)
			r.assume("spec."+key, "the configuration sets it to this value")
		}
	}
}

// again injects a candidate for the original; nil where that fails.
func (r *removal) again(req RemoveRequest, candidate *pod) *pod {
	res, err := Istio(req.Injector, Request{Pod: candidate.object(), Owner: req.Owner, Namespace: req.Namespace})
	if err != nil {
		return nil
	}
	p, err := newPod(res.Pod)
	if err != nil {
		return nil
	}
	return p
}
