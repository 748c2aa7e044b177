// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "github.com/prerig/prerig/fn/podmap"

// nothings are the ways to write an empty field.
type nothings struct {
	field string
	ways  []any
}

func emptyList(field string) nothings { return nothings{field, []any{nil, []any{}}} }
func emptyMap(field string) nothings  { return nothings{field, []any{nil, object{}}} }

// nullableStringMap is emptyMap for a map of strings, which may have a key without a value as well.
func nullableStringMap(field string, keys ...string) nothings {
	n := emptyMap(field)
	for _, key := range keys {
		n.ways = append(n.ways, object{key: nil})
	}
	return n
}

var nothingsOfContainers = []nothings{
	emptyList("env"), emptyList("ports"), emptyList("args"), emptyList("command"), emptyList("volumeMounts"),
	emptyList("envFrom"),
	emptyMap("resources"), emptyMap("securityContext"), emptyMap("lifecycle"), {"livenessProbe", []any{nil}},
	{"imagePullPolicy", []any{nil, ""}}, {"workingDir", []any{nil, ""}}, {"tty", []any{false}},
}

var nothingsOfPods = []nothings{
	emptyList("volumes"), emptyList("initContainers"), emptyList("imagePullSecrets"), emptyList("tolerations"),
	emptyList("hostAliases"),
	emptyList("readinessGates"), emptyList("topologySpreadConstraints"), nullableStringMap("nodeSelector", "disk"),
	emptyMap("affinity"),
	emptyMap("securityContext"), emptyMap("dnsConfig"), {"serviceAccountName", []any{nil, ""}},
	{"dnsPolicy", []any{nil, ""}},
	{"hostNetwork", []any{nil, false}}, {"terminationGracePeriodSeconds", []any{nil, 0}}, {"nodeName", []any{""}},
}

var nothingsOfMetadata = []nothings{
	nullableStringMap("labels", "app", "istio.io/rev"),
	nullableStringMap("annotations", "note", "sidecar.istio.io/nativeSidecar"), emptyList("finalizers"),
	{"creationTimestamp", []any{nil}}, {"name", []any{nil, ""}},
}

// writeEmptyFields writes, with the probability p, an empty value to each of the fields that the object does not have.
func (d draw) writeEmptyFields(of object, p float64, fields []nothings) {
	for _, n := range fields {
		if _, has := of[n.field]; !has && d.happensWithProbability(p/2) {
			of[n.field] = podmap.CopyValue(pick(d, n.ways...)) // what is in it is the case's own
		}
	}
}

// nullValues removes the values of some labels and annotations, as charts print them: to Kubernetes, null is the
// empty string.
func (d draw) nullValues(meta object) {
	for _, field := range []string{"labels", "annotations"} {
		of, _ := meta[field].(object)
		if len(of) > 0 && d.happensWithProbability(0.03) {
			of[pick(d, podmap.SortedKeys(of)...)] = nil
		}
	}
}
