// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/prerig/prerig/internal/benchmark"
)

// kustomizeBuild is a build of triples without a function, with one that does nothing and with prerig-fn. Most of what a
// function costs there is kustomize's own.
func (b *bench) kustomizeBuild() error {
	triples := b.options.kustomize
	program := filepath.Join(b.dir, "kustomize")
	if err := build(b.ctx, program, "sigs.k8s.io/kustomize/kustomize/v5"); err != nil {
		return err
	}
	names := []string{"no function", "a function that does nothing", "prerig-fn"}
	var contenders []contender
	for i, function := range []string{"", b.noop, b.binary} {
		dir := filepath.Join(b.dir, fmt.Sprintf("kustomize-%d", i))
		if err := kustomization(dir, triples, function); err != nil {
			return err
		}
		contenders = append(contenders, contender{
			name: names[i], dir: dir, input: os.DevNull,
			args: []string{program, "build", "--enable-alpha-plugins", "--enable-exec", "."},
		})
	}
	medians, err := b.compare(b.rounds, contenders...)
	if err != nil {
		return err
	}
	rows := [][]string{{"", "wall", "CPU", "peak memory"}}
	for i, m := range medians {
		rows = append(rows, []string{names[i], benchmark.Seconds(m.Wall), benchmark.Seconds(m.CPU), benchmark.Megabytes(m.Peak)})
	}
	return b.report.Table(fmt.Sprintf("kustomize build of %d triples", triples), rows...)
}

// kustomization writes a directory for kustomize with triples and, where it is not empty, a function.
func kustomization(dir string, triples int, function string) error {
	files := map[string]string{
		"kustomization.yaml": "resources: [all.yaml]\n",
		"all.yaml":           string(stream(triples)),
	}
	if function != "" {
		// kustomize takes a path of a function only from its own directory.
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(function, filepath.Join(dir, "function")); err != nil {
			return err
		}
		files["kustomization.yaml"] += "transformers: [policy.yaml]\n"
		files["policy.yaml"] = policyWith("    config.kubernetes.io/function: |\n      exec: {path: ./function}\n")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
