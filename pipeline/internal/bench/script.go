// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// script renders one application as one would do it by hand: $1 is the repository, $2 the application, $3 the branch.
const script = `
git clone -q --depth 1 "$1" source
git clone -q --depth 1 -b "$3" "$1" rendered
mkdir -p "rendered/$2"
kustomize build --enable-alpha-plugins --enable-exec "source/apps/$2" > "rendered/$2/manifests.yaml"
cd rendered
git add -A
git commit -q -m "Render $2"
git push -q origin HEAD
`

// allScript renders several applications and clones and pushes once for all: $1 is the repository, $2 the branch, the
// rest are applications.
const allScript = `
repository=$1 branch=$2
shift 2
git clone -q --depth 1 "$repository" source
git clone -q --depth 1 -b "$branch" "$repository" rendered
for app; do
  mkdir -p "rendered/$app"
  kustomize build --enable-alpha-plugins --enable-exec "source/apps/$app" > "rendered/$app/manifests.yaml"
done
cd rendered
git add -A
git commit -q -m "Render"
git push -q origin HEAD
`

// byHand is the branch that the script writes.
const byHand = "by-hand"

// runScript runs a script in a new directory and returns its duration.
func (b *benchRun) runScript(text string, args ...string) (time.Duration, error) {
	dir, err := os.MkdirTemp(b.dir, "script-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(b.ctx, "sh", append([]string{"-euc", text, "script"}, args...)...)
	cmd.Dir, cmd.Env = dir, b.helmEnvironment()
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("running the script: %w\n%s", err, out)
	}
	return time.Since(begin), nil
}

// branchByHand makes the script's branch with what the script needs to begin: one commit.
func (b *benchRun) branchByHand(r *testbed.Repository) error {
	cmd := exec.CommandContext(b.ctx, "sh", "-euc", `
git init -q -b "$1" first && cd first
git commit -q --allow-empty -m first
git push -q "$2" HEAD`, "first", byHand, r.URL)
	cmd.Dir, cmd.Env = filepath.Join(b.dir, "git"), testbed.Environment()
	defer os.RemoveAll(filepath.Join(b.dir, "git", "first"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making the branch of the script: %w\n%s", err, out)
	}
	return nil
}
