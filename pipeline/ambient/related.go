// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// routing are the kinds of objects that mean hosts of other namespaces, or are meant by them.
var routing = []string{
	virtualServices, destinationRules, httpRoutes, "GRPCRoute.gateway.networking.k8s.io", "ServiceEntry.networking.istio.io", kubernetesGateways,
	"Service", "Ingress.networking.k8s.io", canaries,
}

// relations are which namespaces mean hosts or waypoints of each other.
type relations struct {
	of map[string]map[string]bool
	// selected are the workloads that policies of the root namespace select by labels.
	selected map[*object]bool
}

// relationsOf returns those of the tree, which are found once.
func relationsOf(t *tree) *relations {
	if t.related != nil {
		return t.related
	}
	t.related = &relations{of: map[string]map[string]bool{}, selected: map[*object]bool{}}
	known := map[string]bool{}
	entries := map[string]string{} // the namespace of a ServiceEntry, by host
	for _, o := range t.objects {
		known[o.namespace] = true
		if o.kind == "ServiceEntry" {
			for _, host := range textList(o.spec["hosts"]) {
				entries[host] = o.namespace
			}
		}
	}
	for _, key := range routing {
		for _, o := range t.byKind[key] {
			for _, label := range o.labels {
				t.related.add(o.namespace, label, known)
			}
			forEachText(o.spec, func(text string) {
				t.related.add(o.namespace, text, known)
				t.related.add(o.namespace, entries[text], known)
				for part := range strings.SplitSeq(text, ".") {
					t.related.add(o.namespace, part, known)
				}
			})
		}
	}
	for _, o := range t.byKind["Namespace"] {
		for _, label := range o.labels {
			t.related.add(o.name, label, known)
		}
	}
	findSelected(t)
	return t.related
}

// add notes that an object of a namespace means another one, which concerns both.
func (r *relations) add(namespace, other string, known map[string]bool) {
	if other == "" || other == namespace || !known[other] {
		return
	}
	for _, pair := range [][2]string{{namespace, other}, {other, namespace}} {
		if r.of[pair[0]] == nil {
			r.of[pair[0]] = map[string]bool{}
		}
		r.of[pair[0]][pair[1]] = true
	}
}

// findSelected finds the workloads of any namespace that decide whether a policy of the root namespace is for gateways only.
func findSelected(t *tree) {
	var selectors []map[string]string
	for _, o := range t.of[t.options.RootNamespace] {
		for _, key := range []string{"selector", "workloadSelector"} {
			fields := podmap.MapAt(o.spec, key)
			for _, labels := range []any{fields["matchLabels"], fields["labels"]} {
				if selector := podmap.StringMap(labels); len(selector) > 0 {
					selectors = append(selectors, selector)
				}
			}
		}
	}
	for _, o := range t.objects {
		for _, template := range o.templates {
			labels := podmap.StringMap(podmap.MapAt(template.Pod, "metadata", "labels"))
			if slices.ContainsFunc(selectors, func(selector map[string]string) bool { return hasLabels(labels, selector) }) {
				t.related.selected[o] = true
			}
		}
	}
}

// concerns reports whether an object matters to what is found in some namespaces.
func concerns(t *tree, o *object, names []string) bool {
	r := relationsOf(t)
	return o.namespace == "" || o.namespace == t.options.RootNamespace || r.selected[o] ||
		slices.ContainsFunc(names, func(name string) bool { return o.namespace == name || r.of[name][o.namespace] })
}

// around returns the parts of the files that concern a namespace: the documents of its objects, and of those that they mean.
func around(t *tree, name string) (out []File) {
	wanted := map[[2]int]bool{}
	r := relationsOf(t)
	namespaces := append(podmap.SortedKeys(r.of[name]), name, "", t.options.RootNamespace)
	for _, namespace := range namespaces {
		for _, o := range t.of[namespace] {
			wanted[[2]int{o.file, o.doc}] = true
		}
	}
	for o := range r.selected {
		wanted[[2]int{o.file, o.doc}] = true
	}
	places := make([][2]int, 0, len(wanted))
	for place := range wanted {
		places = append(places, place)
	}
	slices.SortFunc(places, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	last := -1
	for _, place := range places {
		f := t.files[place[0]]
		if place[0] != last {
			out, last = append(out, File{Path: f.Path}), place[0]
		}
		part := &out[len(out)-1]
		part.Docs = append(part.Docs, f.Docs[place[1]])
		var clean *manifest.Document
		if place[1] < len(f.Clean) {
			clean = f.Clean[place[1]]
		}
		part.Clean = append(part.Clean, clean)
	}
	return out
}

// forEachText calls do for each string of a value.
func forEachText(v any, do func(string)) {
	switch v := v.(type) {
	case string:
		do(v)
	case []any:
		for _, e := range v {
			forEachText(e, do)
		}
	case map[string]any:
		for _, e := range v {
			forEachText(e, do)
		}
	}
}
