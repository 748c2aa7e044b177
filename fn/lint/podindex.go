// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"path"
	"strings"
)

// anyDirectory is a scope with all pods that name no namespace.
const anyDirectory = "\x00"

// podIndex finds pods by label without a look at each.
type podIndex struct {
	byLabel map[string][]*Summary
	byName  map[string][]*Summary
	byScope map[string][]*Summary
}

func newPodIndex(pods []Summary) *podIndex {
	x := &podIndex{byLabel: map[string][]*Summary{}, byName: map[string][]*Summary{}, byScope: map[string][]*Summary{}}
	for i := range pods {
		pod := &pods[i]
		in := serviceLookupScope(pod.ref.Namespace, pod.file)
		for k, v := range pod.labels {
			key := in + "\x00" + k + "\x00" + v
			x.byLabel[key] = append(x.byLabel[key], pod)
			if in != pod.ref.Namespace {
				key = anyDirectory + "\x00" + k + "\x00" + v
				x.byLabel[key] = append(x.byLabel[key], pod)
			}
		}
		x.byScope[in] = append(x.byScope[in], pod)
		x.byName[in+"\x00"+pod.ref.Name] = append(x.byName[in+"\x00"+pod.ref.Name], pod)
	}
	return x
}

// podsMatchingLabels returns the pods that have all labels. It looks at those that have the rarest.
func (x *podIndex) podsMatchingLabels(in string, selector map[string]string) []*Summary {
	var fewest []*Summary
	first := true
	for k, v := range selector {
		pods := x.byLabel[in+"\x00"+k+"\x00"+v]
		if first || len(pods) < len(fewest) {
			fewest, first = pods, false
		}
	}
	var out []*Summary
	for _, pod := range fewest {
		if hasLabels(pod.labels, selector) {
			out = append(out, pod)
		}
	}
	return out
}

// selectedInSiblingDirectory returns the pods for a Service in a directory without workloads: those of one directory
// beside, below or above it, as where the Services of an application are in a directory of their own. Pods of several
// such directories may be alternatives.
func (x *podIndex) selectedInSiblingDirectory(in string, selector map[string]string) []*Summary {
	if len(x.byScope[in]) > 0 {
		return nil
	}
	var out []*Summary
	from := ""
	for _, pod := range x.podsMatchingLabels(anyDirectory, selector) {
		there := serviceLookupScope(pod.ref.Namespace, pod.file)
		if !areClose(strings.TrimPrefix(in, anyDirectory), strings.TrimPrefix(there, anyDirectory)) {
			continue
		}
		if from != "" && there != from {
			return nil
		}
		from = there
		out = append(out, pod)
	}
	return out
}

// areClose reports whether two directories have the same parent, or one is the other's parent.
func areClose(a, b string) bool {
	return path.Dir(a) == path.Dir(b) || path.Dir(a) == b || path.Dir(b) == a
}

func hasLabels(labels, selector map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}
