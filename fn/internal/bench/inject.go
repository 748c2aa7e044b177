// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/internal/benchmark"
)

// compareInjectCommands compares prerig inject with another command that injects into the same stream, such as istioctl
// kube-inject with a saved configuration.
func (b *bench) compareInjectCommands() error {
	beside := strings.Fields(b.beside)
	prerig := filepath.Join(filepath.Dir(b.binary), "prerig")
	rows := [][]string{{"", "size", filepath.Base(beside[0]) + ": wall", "CPU", "memory", "prerig inject: wall", "CPU", "memory",
		"ratio of wall time", "of CPU", "of memory"}}
	for _, m := range mixes {
		objects := m.stream(b.triples)
		input := filepath.Join(b.dir, "stream.yaml")
		if err := os.WriteFile(input, objects, 0o644); err != nil {
			return err
		}
		medians, err := b.compareContenders(b.rounds,
			contender{name: beside[0], input: input, args: beside},
			contender{name: "prerig inject", input: input, args: []string{prerig, "inject", "-q", "-p", "istio", "-"}})
		if err != nil {
			return err
		}
		other, ours := medians[0], medians[1]
		row := []string{m.name, benchmark.Megabytes(int64(len(objects)))}
		for _, s := range medians {
			row = append(row, benchmark.Seconds(s.Wall), benchmark.Seconds(s.CPU), benchmark.Megabytes(s.Peak))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f", other.Wall.Seconds()/ours.Wall.Seconds()),
			fmt.Sprintf("%.1f", other.CPU.Seconds()/ours.CPU.Seconds()), fmt.Sprintf("%.2f", float64(other.Peak)/float64(ours.Peak))))
	}
	return b.report.Table(fmt.Sprintf("%d triples in a stream, by how many workloads are alike", b.triples), rows...)
}
