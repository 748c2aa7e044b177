// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package demo is prerig demo: three clusters' worth of repositories on loopback, a Git host with pull requests, and
// prerig serve, in a situation with something to do: an upgrade of Istio that waits for review, an application that
// does not build, and a manual change on a rendered branch. It needs the git command, writes only to a temporary
// directory, and removes that at its end.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/freeport"
	"github.com/prerig/prerig/pipeline/internal/demo/host"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// Options of a demo.
type Options struct {
	// Program is the path of prerig, and Shown how the printed commands call it.
	Program, Shown string
	// Out is where it prints.
	Out io.Writer
	// Exit does all that is suggested, prints what happens, and ends.
	Exit bool
}

// setupTime bounds the time until there is something to see, and each of the things to try with Exit.
const setupTime = 8 * time.Minute

// printer prints lines to a terminal.
type printer struct{ out io.Writer }

func (p printer) printf(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// printIndented prints lines of a command's output.
func (p printer) printIndented(text string) {
	for line := range strings.Lines(text) {
		p.printf("     %s", strings.TrimRight(line, "\n"))
	}
}

// demo is one that runs.
type demo struct {
	Options
	printer
	dir              string
	host             *host.Host
	source, rendered *host.Repository
	daemon           *testbed.Daemon
	page             string // of the daemon, without a slash at its end
}

// Run shows the demo until the context ends, or with Exit until everything is done. A context that ends is no error.
func Run(ctx context.Context, o Options) (err error) {
	dir, err := os.MkdirTemp("", "prerig-demo-")
	if err != nil {
		return fmt.Errorf("making the directory of the demo: %w", err)
	}
	d := &demo{Options: o, printer: printer{o.Out}, dir: dir}
	defer func() {
		err = errors.Join(err, d.close())
	}()
	err = d.show(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// close ends everything and removes the directory.
func (d *demo) close() error {
	var errs []error
	if d.daemon != nil {
		errs = append(errs, d.daemon.Stop())
	}
	if d.host != nil {
		errs = append(errs, d.host.Close())
	}
	if err := os.RemoveAll(d.dir); err != nil {
		errs = append(errs, fmt.Errorf("removing the directory of the demo: %w", err))
	}
	d.printf("Everything is stopped, and %s is removed.", d.dir)
	return errors.Join(errs...)
}

func (d *demo) show(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	if err := d.start(setup, ctx); err != nil {
		return err
	}
	if err := d.stage(setup); err != nil {
		return err
	}
	things, err := d.things(setup)
	if err != nil {
		return err
	}
	if d.Exit {
		return d.doAll(ctx, things)
	}
	d.invite(things)
	<-ctx.Done()
	d.printf("")
	return nil
}

// start makes the repositories and starts the host and the daemon, which end with close only.
func (d *demo) start(ctx, lasting context.Context) error {
	d.printf("Starting a Git host and prerig serve on this machine, in %s …", d.dir)
	var err error
	git := filepath.Join(d.dir, "git")
	if d.host, err = host.Start(context.WithoutCancel(lasting), git); err != nil {
		return err
	}
	if d.source, err = d.host.Repository(ctx, git, "shop/config", filepath.Join(d.dir, "config")); err != nil {
		return err
	}
	if d.rendered, err = d.host.Repository(ctx, git, "shop/rendered", filepath.Join(d.dir, "rendered")); err != nil {
		return err
	}
	d.host.Moved, d.host.Home = d.apply, d.overview
	for key, value := range map[string]string{"user.name": "You", "user.email": "you@example.com", "commit.gpgsign": "false", "push.default": "current"} {
		if _, err := d.source.InWork(ctx, "config", key, value); err != nil {
			return err
		}
	}
	if _, err := d.source.Commit(ctx, "Add the shop", sourceFiles(d.source.URL, d.rendered.URL)); err != nil {
		return err
	}
	return d.serve(ctx, lasting)
}

// serve starts the daemon.
func (d *demo) serve(ctx, lasting context.Context) error {
	hooks, err1 := freeport.Address()
	admin, err2 := freeport.Address()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	d.page = "http://" + admin
	secret := "secrets/shop/host/"
	files := map[string]string{
		secret + "token": d.host.Token, secret + "username": "prerig", secret + "password": d.host.Token,
		secret + ".hosts": d.host.URL,
		"prerig.yaml": "pipelines_git: {url: " + d.source.URL +
			", branch: main, path: pipelines}\nsecrets: secrets\nstate: state\nlisten: " + hooks +
			"\nadmin: {listen: " + admin + "}\nexternal_url: " + d.page + "\nlog: {format: json}\n" +
			"receivers:\n- {name: host, provider: gitea, secret: hook.key}\n",
	}
	daemon, err := testbed.Start(context.WithoutCancel(lasting), d.Program, filepath.Join(d.dir, "daemon"), hooks,
		files)
	if err != nil {
		return err
	}
	d.daemon = daemon
	d.host.Notify(daemon.Hooks+"/host", daemon.Key)
	return ctx.Err()
}

// state is the directory that commands of the daemon's clients name.
func (d *demo) state() string { return filepath.Join(d.dir, "daemon", "state") }
