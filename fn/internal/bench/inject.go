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
// kube-inject with a saved configuration. Without such a command it does not measure.
func (b *bench) compareInjectCommands() error {
	beside := strings.Fields(b.beside)
	if len(beside) == 0 {
		return nil
	}
	objects := plainTripleStream(b.triples)
	input := filepath.Join(b.dir, "stream.yaml")
	if err := os.WriteFile(input, objects, 0o644); err != nil {
		return err
	}
	prerig := filepath.Join(filepath.Dir(b.binary), "prerig")
	medians, err := b.compareContenders(b.rounds,
		contender{name: beside[0], input: input, args: beside},
		contender{name: "prerig inject", input: input, args: []string{prerig, "inject", "-q", "-p", "istio", "-"}})
	if err != nil {
		return err
	}
	other, ours := medians[0], medians[1]
	row := func(name string, s sample) []string {
		return []string{name, benchmark.Seconds(s.Wall), benchmark.Seconds(s.CPU), benchmark.Megabytes(s.Peak),
			benchmark.Megabytes(s.Out)}
	}
	return b.report.Table(fmt.Sprintf("%d Deployments + Services + ConfigMaps, a stream of %s", b.triples, benchmark.Megabytes(int64(len(objects)))),
		[]string{"", "wall", "CPU", "peak memory", "output"}, row(filepath.Base(beside[0]), other),
		row("prerig inject", ours),
		[]string{"ratio", fmt.Sprintf("%.1f", other.Wall.Seconds()/ours.Wall.Seconds()),
			fmt.Sprintf("%.1f", other.CPU.Seconds()/ours.CPU.Seconds()),
			fmt.Sprintf("%.2f", float64(other.Peak)/float64(ours.Peak)), ""})
}
