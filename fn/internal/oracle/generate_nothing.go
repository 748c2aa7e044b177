// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

// nothings are the ways to write that a field has nothing in it.
type nothings struct {
	field string
	ways  []any
}

func emptyList(field string) nothings { return nothings{field, []any{nil, []any{}}} }
func emptyMap(field string) nothings  { return nothings{field, []any{nil, object{}}} }

var nothingsOfContainers = []nothings{
	emptyList("env"), emptyList("ports"), emptyList("args"), emptyList("command"), emptyList("volumeMounts"), emptyList("envFrom"),
	emptyMap("resources"), emptyMap("securityContext"), emptyMap("lifecycle"), {"livenessProbe", []any{nil}},
	{"imagePullPolicy", []any{nil, ""}}, {"workingDir", []any{nil, ""}}, {"tty", []any{false}},
}

var nothingsOfPods = []nothings{
	emptyList("volumes"), emptyList("initContainers"), emptyList("imagePullSecrets"), emptyList("tolerations"), emptyList("hostAliases"),
	emptyList("readinessGates"), emptyList("topologySpreadConstraints"), emptyMap("nodeSelector"), emptyMap("affinity"),
	emptyMap("securityContext"), emptyMap("dnsConfig"), {"serviceAccountName", []any{nil, ""}}, {"dnsPolicy", []any{nil, ""}},
	{"hostNetwork", []any{nil, false}}, {"terminationGracePeriodSeconds", []any{nil, 0}}, {"nodeName", []any{""}},
}

var nothingsOfMetadata = []nothings{
	emptyMap("labels"), emptyMap("annotations"), emptyList("finalizers"), {"creationTimestamp", []any{nil}}, {"name", []any{nil, ""}},
}

// nothing writes with the probability p that there is nothing in each of the fields which the object does not have.
func (d draw) nothing(of object, p float64, fields []nothings) {
	for _, n := range fields {
		if _, has := of[n.field]; !has && d.chance(p/2) {
			of[n.field] = pick(d, n.ways...)
		}
	}
}
