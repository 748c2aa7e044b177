// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/prerig/prerig/internal/benchmark"
)

// measureLintCommand is prerig lint beside prerig inject over the same stream of manifests. It injects too, as the
// rules read pods with the sidecar.
func (b *bench) measureLintCommand() error {
	objects := plainTripleStream(b.triples)
	input := filepath.Join(b.dir, "stream.yaml")
	if err := os.WriteFile(input, objects, 0o644); err != nil {
		return err
	}
	prerig := filepath.Join(filepath.Dir(b.binary), "prerig")
	medians, err := b.compareContenders(b.rounds,
		contender{name: "prerig inject", input: input, args: []string{prerig, "inject", "-q", "-p", "istio", "-"}},
		contender{name: "prerig lint", input: input,
			args: []string{prerig, "lint", "-q", "-p", "istio", "--fail-on", "never", "-"}})
	if err != nil {
		return err
	}
	inject, lint := medians[0], medians[1]
	wall := lint.Wall.Seconds() / inject.Wall.Seconds()
	err = b.report.Table(fmt.Sprintf("%d Deployments + Services + ConfigMaps, a stream of %s", b.triples, benchmark.Megabytes(int64(len(objects)))),
		[]string{"", "wall", "CPU", "peak memory", "output"},
		[]string{"prerig inject", benchmark.Seconds(inject.Wall), benchmark.Seconds(inject.CPU),
			benchmark.Megabytes(inject.Peak), benchmark.Megabytes(inject.Out)},
		[]string{"prerig lint", benchmark.Seconds(lint.Wall), benchmark.Seconds(lint.CPU),
			benchmark.Megabytes(lint.Peak), benchmark.Megabytes(lint.Out)},
		[]string{"ratio", fmt.Sprintf("%.2f", wall), fmt.Sprintf("%.2f", lint.CPU.Seconds()/inject.CPU.Seconds()),
			fmt.Sprintf("%.2f", float64(lint.Peak)/float64(inject.Peak)), ""})
	b.report.Require(wall <= 1.5, "prerig lint takes %.2f times as long as prerig inject, not at most 1.5", wall)
	b.report.Require(inject.Out > int64(len(objects)), "prerig inject wrote %d bytes: that is not an injection",
		inject.Out)
	return err
}
