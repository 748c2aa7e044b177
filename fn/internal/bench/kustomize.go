// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/prerig/prerig/internal/benchmark"
)

// kustomizeBuild builds triples without a function, with one that makes no changes and with prerig-fn. Most of a
// function's cost in this comparison is kustomize's own. In addition, prerig render builds and injects as the
// daemon does, from a repository, without any cache.
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
		if err := writeKustomizeDirectory(dir, triples, function); err != nil {
			return err
		}
		contenders = append(contenders, contender{
			name: names[i], dir: dir, input: os.DevNull,
			args: []string{program, "build", "--enable-alpha-plugins", "--enable-exec", "."},
		})
	}
	render, err := b.renderOf(filepath.Join(b.dir, "kustomize-render"), triples)
	if err != nil {
		return err
	}
	contenders = append(contenders, render)
	medians, err := b.compareContenders(b.rounds, contenders...)
	if err != nil {
		return err
	}
	rows := [][]string{{"", "wall", "CPU", "peak memory"}}
	for i, m := range medians {
		rows = append(rows, []string{contenders[i].name, benchmark.Seconds(m.Wall), benchmark.Seconds(m.CPU), benchmark.Megabytes(m.Peak)})
	}
	return b.report.Table(fmt.Sprintf("kustomize build of %d triples", triples), rows...)
}

// renderedPipeline renders the directory app with the policy of the pipelines.
const renderedPipeline = `apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: bench}
spec:
  source: {git: {url: "https://git.example.com/bench.git", ref: {branch: main}}}
  build: {path: app}
  policies: [{file: policy.yaml}]
  publish: [{git: {branch: rendered}}]
`

// renderOf writes a repository of triples with a pipeline to dir, and returns prerig render of it.
func (b *bench) renderOf(dir string, triples int) (contender, error) {
	if err := writeKustomizeDirectory(filepath.Join(dir, "source", "app"), triples, ""); err != nil {
		return contender{}, err
	}
	for name, text := range map[string]string{"pipelines/bench.yaml": renderedPipeline, "policies/policy.yaml": policy} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return contender{}, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return contender{}, err
		}
	}
	git := exec.CommandContext(b.ctx, "sh", "-c", "git init -q -b main . && git add . && git -c user.name=bench -c user.email=bench@example.com commit -qm all")
	git.Dir = filepath.Join(dir, "source")
	if said, err := git.CombinedOutput(); err != nil {
		return contender{}, fmt.Errorf("making a repository: %w: %s", err, said)
	}
	program := filepath.Join(filepath.Dir(b.binary), "prerig")
	return contender{
		name: "prerig render", dir: dir, input: os.DevNull,
		args: []string{program, "render", "--no-cache", "--cache", filepath.Join(dir, "cache"), "--source", "source",
			"-o", "out"},
	}, nil
}

// writeKustomizeDirectory writes a directory for kustomize with triples and, where it is not empty, a function.
func writeKustomizeDirectory(dir string, triples int, function string) error {
	files := map[string]string{
		"kustomization.yaml": "resources: [all.yaml]\n",
		"all.yaml":           string(plainTripleStream(triples)),
	}
	if function != "" {
		// kustomize accepts the path of a function only from its own directory.
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
