// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows the pipeline on this machine, with a Git server and prerig serve on loopback: a push that is
// rendered, one without an effect, and an upgrade of Istio over all applications as one commit. It needs git,
// and cleans up after itself.
//
//	go run ./pipeline/internal/demo [-prerig dist/prerig] [-apps 20]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

func main() {
	prerig := flag.String("prerig", "dist/prerig", "the prerig to show")
	apps := flag.Int("apps", 20, "how many applications there are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := runDemo(ctx, os.Stdout, *prerig, *apps); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demoRun is one showing.
type demoRun struct {
	out        io.Writer
	prerig     string
	apps       int
	repository *testbed.Repository
	daemon     *testbed.Daemon
}

func runDemo(ctx context.Context, out io.Writer, prerig string, apps int) (err error) {
	dir, err := os.MkdirTemp("", "prerig-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if prerig, err = filepath.Abs(prerig); err != nil {
		return err
	}
	git, err := testbed.ServeGit(filepath.Join(dir, "git"))
	if err != nil {
		return err
	}
	defer git.Close()
	d := &demoRun{out: out, prerig: prerig, apps: apps}
	if d.repository, err = git.Repository(ctx, "config"); err != nil {
		return err
	}
	if err := d.startDaemon(ctx, dir); err != nil {
		return err
	}
	defer func() {
		stopping := d.daemon.Stop()
		if err == nil {
			err = stopping
		}
	}()
	for _, step := range []func(context.Context) error{d.pushVersion, d.pushComment, d.upgradeMesh} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demoRun) printLine(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// printOutput prints lines of a command's output, indented.
func (d *demoRun) printOutput(text string) {
	for line := range strings.Lines(text) {
		d.printLine("    %s", strings.TrimRight(line, "\n"))
	}
}

// startDaemon commits the applications and starts the daemon, which renders all of them.
func (d *demoRun) startDaemon(ctx context.Context, dir string) error {
	files := policyFiles("1.29.0")
	for i := range d.apps {
		for name, text := range appFiles(i, "1.0") {
			files[name] = text
		}
	}
	if _, err := d.repository.Commit(ctx, "Add the shop", files); err != nil {
		return err
	}
	d.printLine("\n1. A Git server on this machine has a repository with %d applications and one policy for the mesh.", d.apps)
	d.printLine("   They hold what their authors wrote: a Deployment with one container and a Service each, and no sidecar.")
	begin := time.Now()
	var err error
	if d.daemon, err = testbed.Serve(ctx, d.prerig, filepath.Join(dir, "daemon"), pipelineFiles(d.apps, d.repository.URL)); err != nil {
		return err
	}
	d.printLine("\n2. prerig serve starts, with a RenderPipeline for each application. It renders what it has never rendered:")
	if err := d.waitForFiles(ctx, d.apps, "proxyv2:1.29.0"); err != nil {
		return err
	}
	if err := d.waitForDebounce(ctx); err != nil {
		return err
	}
	return d.printLog(ctx, "", begin)
}

// pushVersion is a new version of one application.
func (d *demoRun) pushVersion(ctx context.Context) error {
	d.printLine("\n3. Somebody pushes a new version of %s. The Git host calls the webhook, signed:", appName(2))
	before, begin := d.repository.Head(rendered), time.Now()
	if err := d.commitAndPush(ctx, "Release 1.1 of "+appName(2), appFiles(2, "1.1"), 202); err != nil {
		return err
	}
	if err := d.waitForCommit(ctx, before); err != nil {
		return err
	}
	if err := d.printLog(ctx, before, begin); err != nil {
		return err
	}
	d.printLine("   One commit on the branch %q, with what changes in the cluster and nothing else:", rendered)
	diff, err := d.repository.Git(ctx, "diff", "--unified=0", before, rendered, "--", appName(2))
	if err != nil {
		return err
	}
	d.printOutput(changedLines(diff))
	message, err := d.repository.Git(ctx, "log", "-1", "--format=%(trailers)", rendered)
	if err != nil {
		return err
	}
	d.printLine("   and trailers that say where it comes from and how to make it again:")
	d.printOutput(message)
	return d.waitForDebounce(ctx)
}

// pushComment is a push that has no effect on the result.
func (d *demoRun) pushComment(ctx context.Context) error {
	d.printLine("\n4. Somebody pushes a comment in the manifest of %s:", appName(2))
	before, mark, begin := d.repository.Head(rendered), d.daemon.Mark(), time.Now()
	files := appFiles(2, "1.1")
	for name, text := range files {
		if strings.HasSuffix(name, "app.yaml") {
			files[name] = "# Owned by the shop's team.\n" + text
		}
	}
	if err := d.commitAndPush(ctx, "Say who owns "+appName(2), files, 202); err != nil {
		return err
	}
	e, err := d.daemon.Entry(ctx, mark, func(e testbed.Entry) bool {
		return e.Fields["outcome"] == "Unchanged" && strings.HasSuffix(fmt.Sprint(e.Fields["pipeline"]), appName(2))
	})
	if err != nil {
		return err
	}
	if d.repository.Head(rendered) != before {
		return fmt.Errorf("pushing a comment: it led to a commit")
	}
	d.printLine("   It is rendered, the result is the same, and there is no commit (%s).", elapsedText(begin, e.At))
	return d.waitForDebounce(ctx)
}

// upgradeMesh is a new version of Istio for all applications.
func (d *demoRun) upgradeMesh(ctx context.Context) error {
	d.printLine("\n5. Somebody raises Istio from 1.29.0 to 1.29.1, one line in policy/mesh.yaml. What a reviewer of that sees before it\n   is merged (prerig diff):")
	before := d.repository.Head(rendered)
	if err := testbed.Write(d.repository.Work, policyFiles("1.29.1")); err != nil {
		return err
	}
	if err := d.previewChange(ctx); err != nil {
		return err
	}
	d.printLine("   It is merged, and pushed:")
	begin := time.Now()
	if err := d.commitAndPush(ctx, "Upgrade Istio to 1.29.1", policyFiles("1.29.1"), 202); err != nil {
		return err
	}
	if err := d.waitForFiles(ctx, d.apps, "proxyv2:1.29.1"); err != nil {
		return err
	}
	if err := d.printLog(ctx, before, begin); err != nil {
		return err
	}
	stat, err := d.repository.Git(ctx, "diff", "--shortstat", before, rendered, "--", ".", ":(exclude).prerig")
	if err != nil {
		return err
	}
	d.printLine("   over all %d applications:", d.apps)
	d.printOutput(strings.TrimSpace(stat))
	d.printLine("\nThe branch %q is what Flux or Argo CD applies. Reverting that one line of the policy brings the old one back.", rendered)
	return nil
}

// previewChange runs prerig diff in the work tree.
func (d *demoRun) previewChange(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "prerig-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := testbed.Write(filepath.Join(dir, "pipelines"), pipelineFiles(d.apps, d.repository.URL)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, d.prerig, "diff", "--exit-code=false", "--source", d.repository.Work, "--pipelines", filepath.Join(dir, "pipelines"), "--cache", filepath.Join(dir, "cache"))
	var problems strings.Builder
	cmd.Dir, cmd.Stderr = dir, &problems
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running prerig diff: %w\n%s", err, problems.String())
	}
	d.printOutput(string(out))
	return nil
}
