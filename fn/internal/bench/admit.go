// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prerig/prerig/internal/benchmark"
)

// admitRatio is how much of the processor time of prerig inject the command prerig admit may take.
const admitRatio = 2

// fewerUnlike is by what the workloads are fewer of which none are alike: each takes the same time then.
const fewerUnlike = 5

// admitPolicies is how many MutatingAdmissionPolicies there are.
const admitPolicies = 10

// measureAdmitCommand is prerig admit beside prerig inject over the same workloads: without objects of the cluster, with
// those that plugins read, and with MutatingAdmissionPolicies too.
func (b *bench) measureAdmitCommand() error {
	prerig := filepath.Join(filepath.Dir(b.binary), "prerig")
	plain, policies := filepath.Join(b.dir, "cluster.yaml"), filepath.Join(b.dir, "policies.yaml")
	if err := os.WriteFile(plain, clusterObjects(b.triples), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(policies, mutatingPolicies(), 0o644); err != nil {
		return err
	}
	rows := [][]string{{"", "inject: CPU", "admit: CPU", "ratio", "with a cluster", "ratio", "with policies", "ratio", "memory"}}
	for _, m := range []mix{mixes[0], mixes[1], mixes[3]} {
		input, n := filepath.Join(b.dir, "workloads.yaml"), b.triples
		if m.structures == 0 {
			n /= fewerUnlike
			m.name = fmt.Sprintf("%s, %d", m.name, n)
		}
		if err := os.WriteFile(input, m.workloads(n), 0o644); err != nil {
			return err
		}
		admit := func(more ...string) contender {
			return contender{name: "prerig admit", input: input, args: append([]string{prerig, "admit", "-q", "-p", "istio", "-"}, more...)}
		}
		medians, err := b.compareContenders(b.rounds,
			contender{name: "prerig inject", input: input, args: []string{prerig, "inject", "-q", "-p", "istio", "-"}},
			admit(), admit("--cluster", plain), admit("--cluster", plain, "--cluster", policies))
		if err != nil {
			return err
		}
		row := []string{m.name, benchmark.Seconds(medians[0].CPU)}
		for _, s := range medians[1:] {
			ratio := s.CPU.Seconds() / medians[0].CPU.Seconds()
			row = append(row, benchmark.Seconds(s.CPU), fmt.Sprintf("%.2f", ratio))
			b.report.Require(ratio <= admitRatio, "%s: prerig admit takes %.2f times the processor time of prerig inject, not at most %d", m.name, ratio, admitRatio)
			b.report.Require(s.Out > medians[0].Out, "%s: prerig admit wrote %d bytes: pods are missing", m.name, s.Out)
		}
		rows = append(rows, append(row, benchmark.Megabytes(medians[3].Peak)))
	}
	return b.report.Table(fmt.Sprintf("%d workloads by how many are alike; memory is that of the command with policies", b.triples), rows...)
}

// workloads returns n workloads without other objects.
func (m mix) workloads(n int) []byte {
	var b bytes.Buffer
	for i, structure := range m.structuresOf(n) {
		if i > 0 {
			b.WriteString("---\n")
		}
		writeWorkload(&b, structure, i)
	}
	return b.Bytes()
}

// clusterObjects are what the plugins read for n workloads.
func clusterObjects(n int) []byte {
	var b bytes.Buffer
	for i := range namespacesOfMixes {
		fmt.Fprintf(&b, `apiVersion: v1
kind: Namespace
metadata: {name: team-%[1]d, labels: {team: red, istio-injection: enabled}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: team-%[1]d}
spec: {limits: [{type: Container, default: {cpu: "2", memory: 2Gi}, defaultRequest: {cpu: 50m}}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: team-%[1]d}
imagePullSecrets: [{name: registry}]
---
`, i)
	}
	for i := range n {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: app-%d, namespace: team-%d}\n---\n", i, i%namespacesOfMixes)
	}
	b.WriteString(`apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: usual}
value: 1000
globalDefault: true
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandbox}
handler: runsc
`)
	return b.Bytes()
}

// mutatingPolicies are policies with their bindings. Each has labels or annotations of its own, so that their order does not matter.
func mutatingPolicies() []byte {
	var b bytes.Buffer
	for i := range admitPolicies {
		mutation := `patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"example.com/team-%[1]d": namespaceObject.metadata.labels["team"]}}}'}`
		if i%2 == 1 {
			mutation = `patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/n-%[1]d"), value: string(size(object.spec.containers))}]'}`
		}
		fmt.Fprintf(&b, `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: policy-%[1]d}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  matchConditions: [{name: labelled, expression: 'has(object.metadata.labels)'}]
  mutations:
  - `+mutation+`
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: policy-%[1]d}
spec: {policyName: policy-%[1]d}
---
`, i)
	}
	return b.Bytes()
}
