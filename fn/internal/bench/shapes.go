// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/prerig/prerig/internal/benchmark"
)

// mix is an input of triples of which some are alike.
type mix struct {
	name string
	// structures is how many different workloads there are, 0 for as many as triples.
	structures int
	// cpu is how much of the other function's processor time is allowed, 0 for any.
	cpu float64
}

// mixes are the inputs that are compared. Of 60 or 300 structures a few are very frequent, and most are not, as with
// charts and bases.
var mixes = []mix{{"all alike", 1, 0.10}, {"60 shapes", 60, 0.10}, {"300 shapes", 300, 0.20}, {"none alike", 0, 0}}

// seedOfMixes makes each run measure the same objects.
const seedOfMixes = 37

// stream returns n triples.
func (m mix) stream(n int) []byte {
	var b bytes.Buffer
	_, others, _ := strings.Cut(triple, "---\n")
	for i, structure := range m.structuresOf(n) {
		if i > 0 {
			b.WriteString("---\n")
		}
		writeWorkload(&b, structure, i)
		b.WriteString("---\n")
		fmt.Fprintf(&b, others, i)
	}
	return b.Bytes()
}

// structuresOf returns the structures of n workloads.
func (m mix) structuresOf(n int) []int {
	draw := rand.New(rand.NewPCG(seedOfMixes, 0))
	out := make([]int, n)
	for i := range out {
		out[i] = i
		if m.structures > 0 {
			out[i] = int(float64(m.structures) * math.Pow(draw.Float64(), 3))
		}
	}
	return out
}

// namespacesOfMixes is in how many namespaces the workloads are.
const namespacesOfMixes = 40

// writeWorkload writes a workload of a structure with values of its own.
func writeWorkload(b *bytes.Buffer, structure, own int) {
	draw := rand.New(rand.NewPCG(seedOfMixes, uint64(structure)+1))
	chance := func(of int) bool { return draw.IntN(of) == 0 }
	kind := []string{"Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet"}[draw.IntN(5)]
	name := fmt.Sprintf("app-%d", own)
	fmt.Fprintf(b, "apiVersion: apps/v1\nkind: %s\nmetadata:\n  name: %s\n  namespace: team-%d\n  labels:\n    app.kubernetes.io/name: %s\n", kind, name, own%namespacesOfMixes, name)
	for i := range draw.IntN(4) {
		fmt.Fprintf(b, "    example.com/label-%d: %s\n", draw.IntN(9)*10+i, name)
	}
	b.WriteString("spec:\n")
	if kind != "DaemonSet" {
		fmt.Fprintf(b, "  replicas: %d\n", 1+own%5)
	}
	fmt.Fprintf(b, "  selector:\n    matchLabels:\n      app.kubernetes.io/name: %s\n", name)
	if kind == "StatefulSet" {
		b.WriteString("  serviceName: database\n")
	}
	fmt.Fprintf(b, "  template:\n    metadata:\n      labels:\n        app.kubernetes.io/name: %s\n        app.kubernetes.io/version: 2.14.%d\n", name, own)
	if chance(2) {
		b.WriteString("      annotations:\n        prometheus.io/scrape: \"true\"\n        prometheus.io/port: \"9090\"\n")
		if chance(2) {
			fmt.Fprintf(b, "        checksum/config: %xb\n", 1<<40+own)
		}
		if chance(2) {
			fmt.Fprintf(b, "        proxy.istio.io/config: |\n          concurrency: %d\n", 1+draw.IntN(4))
		}
	}
	b.WriteString("    spec:\n")
	if chance(2) {
		fmt.Fprintf(b, "      serviceAccountName: %s\n", name)
	}
	if chance(3) {
		fmt.Fprintf(b, "      # at most %d s\n      terminationGracePeriodSeconds: %d\n", 30, 20+draw.IntN(60))
	}
	if chance(4) {
		fmt.Fprintf(b, "      securityContext:\n        fsGroup: %d\n", 1000+draw.IntN(9))
	}
	if chance(3) {
		fmt.Fprintf(b, "      initContainers:\n      - name: prepare\n        image: registry.example.com/%s/prepare:%d\n        command: [prepare, --all]\n", name, own)
	}
	b.WriteString("      containers:\n")
	for i := range 1 + draw.IntN(3) {
		writeContainer(b, draw, i, own)
	}
	if n := draw.IntN(4); n > 0 {
		b.WriteString("      volumes:\n")
		for i := range n {
			fmt.Fprintf(b, "      - name: volume-%d\n        configMap:\n          name: %s-%d\n", i, name, i)
		}
	}
}

// writeContainer writes the container of a number.
func writeContainer(b *bytes.Buffer, draw *rand.Rand, i, own int) {
	fmt.Fprintf(b, "      - name: part-%d\n        image: registry.example.com/shop/app-%d:2.14.%d\n", i, own, own)
	if n := draw.IntN(5); n > 0 {
		b.WriteString("        args:\n")
		for j := range n {
			fmt.Fprintf(b, "        - --option-%d=app-%d\n", j, own)
		}
	}
	fmt.Fprintf(b, "        ports:\n        - name: http-%d\n          containerPort: %d\n", i, 8080+draw.IntN(40)*10+i)
	if n := draw.IntN(26); n > 0 {
		b.WriteString("        env:\n")
		for j := range n {
			if draw.IntN(4) == 0 {
				fmt.Fprintf(b, "        - name: SECRET_%d\n          valueFrom:\n            secretKeyRef:\n              name: app-%d\n              key: key-%d\n", j, own, j)
			} else {
				fmt.Fprintf(b, "        - name: SETTING_%d\n          value: \"value %d of %d\"\n", j, j, own)
			}
		}
	}
	probe := []string{
		"httpGet:\n            path: /ready\n            port: http-%d\n", "tcpSocket:\n            port: http-%d\n",
		"exec:\n            command: [check, http-%d]\n",
	}[draw.IntN(3)]
	fmt.Fprintf(b, "        readinessProbe:\n          periodSeconds: %d\n          "+probe, 5+draw.IntN(20), i)
	if draw.IntN(2) == 0 {
		fmt.Fprintf(b, "        resources:\n          requests:\n            cpu: %dm\n            memory: %dMi\n",
			50+own%700, 64+own%900)
	}
}

// measureMixes compares with the function that does nothing, by processor time, over inputs of which more or fewer
// workloads are alike.
func (b *bench) measureMixes() error {
	rows := [][]string{{"", "size", "nothing: CPU", "memory", "prerig-fn: CPU", "memory", "ratio of CPU", "of memory", "of wall time"}}
	for _, m := range mixes {
		input, size, err := b.writeResourceList(m.stream(b.triples))
		if err != nil {
			return err
		}
		none, ours, err := b.compareWithNothing(b.rounds, input)
		if err != nil {
			return err
		}
		cpu, peak := ours.CPU.Seconds()/none.CPU.Seconds(), float64(ours.Peak)/float64(none.Peak)
		rows = append(rows, []string{m.name, benchmark.Megabytes(size), benchmark.Seconds(none.CPU), benchmark.Megabytes(none.Peak), benchmark.Seconds(ours.CPU),
			benchmark.Megabytes(ours.Peak), fmt.Sprintf("%.3f", cpu), fmt.Sprintf("%.3f", peak), fmt.Sprintf("%.3f",
				ours.Wall.Seconds()/none.Wall.Seconds())})
		if m.cpu > 0 {
			b.report.Require(cpu <= m.cpu, "%s: processor time is %.2f times that of the function that does nothing, not at most %.2f", m.name, cpu, m.cpu)
		}
	}
	return b.report.Table(fmt.Sprintf("%d triples by how many workloads are alike", b.triples), rows...)
}
