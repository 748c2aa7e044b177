// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
)

func newServe(streams Streams, version string) *cobra.Command {
	cmd := newCommand("serve", "Render and publish pipelines on every change")
	cmd.Long = `Receive events, render the pipelines that they affect and publish the results, until
interrupted. Pipelines are RenderPipeline objects in a directory, which is watched, in a Git
repository (--pipelines-git-url), which is checked regularly and on push events, or in the
cluster that the daemon runs in (--kubernetes). No other service is required; with --nats-url,
any number of workers share the work.

Each pipeline runs once at startup and publishes to the targets in its file. To see a result
beforehand, use prerig render; prerig daemon status and the page on --admin-listen show the outcome
of runs. Webhooks are received at /hook/NAME on --listen, for each receiver in the
configuration file:

  receivers:
  - {name: github, provider: github, secret: hooks/github.key}

Without receivers, the source of each pipeline is checked at its interval (10m by
default), and on prerig daemon reconcile.

Every flag is also a key of the configuration file and an environment variable: --nats-url is
nats: {url: …} and PRERIG_NATS_URL. Flags override variables, and variables override the file.
The file has more keys; examples/daemon/prerig.yaml lists them all.`
	cmd.Example = `  prerig serve --pipelines pipelines/ --state /var/lib/prerig
  prerig serve --pipelines-git-url https://git.example.com/org/apps.git --pipelines-git-path pipelines
  prerig serve --config prerig.yaml`
	return daemonCommand(cmd, streams, version, daemon.Serve)
}

func newWorker(streams Streams, version string) *cobra.Command {
	cmd := newCommand("worker", "Run the jobs that a prerig serve elsewhere has planned")
	cmd.Long = `Take jobs from the queue of a prerig serve, render and publish, until interrupted. A worker
requires the same pipelines, policies and secrets, and the URL of the NATS servers. Pipelines
in a Git repository are read at the same commit as by prerig serve.`
	cmd.Example = `  prerig daemon worker --nats-url nats://nats:4222 --pipelines pipelines/ --state /var/lib/prerig`
	return daemonCommand(cmd, streams, version, daemon.Work)
}

func daemonCommand(cmd *cobra.Command, streams Streams, version string,
	run func(context.Context, *config.Config, daemon.Options) error) *cobra.Command {
	cmd.Args = noArguments
	config.Flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, warnings, err := config.Load(cmd.Flags())
		if err != nil {
			return err
		}
		log, err := newLogger(streams, c)
		if err != nil {
			return err
		}
		for _, text := range warnings {
			log.Warn(text)
		}
		defer runtime.KeepAlive(spareCollector())
		// It would end the process. Configuration and flags are read at the start only.
		reload := make(chan os.Signal, 1)
		signal.Notify(reload, syscall.SIGHUP)
		defer signal.Stop(reload)
		return run(cmd.Context(), c, daemon.Options{Version: toolVersion(version), Log: log, Reload: reload})
	}
	completeDaemonFlags(cmd)
	return cmd
}

// ballastSize is by how much more than half of what it keeps the daemon's heap may grow, times two.
const ballastSize = 128 << 20

// spareCollector makes the garbage collector start when the heap exceeds the live heap by half, because that is the
// state of all pipelines, which is idle most of the time, and by 64 MB more: the processor time of a collection
// matters most if the live heap is small and the allocation rate high, as in an upgrade of a thousand pipelines,
// which spent a quarter of its time in it. The caller must keep the result alive; it is never written to, so that
// it uses no memory except in the collector's accounting. Users that set GOGC or GOMEMLIMIT have chosen otherwise.
func spareCollector() []byte {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	debug.SetGCPercent(50)
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, ballastSize)
}

// newLogger writes to standard error.
func newLogger(streams Streams, c *config.Config) (*slog.Logger, error) {
	level, err := c.Level()
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(streams.Err, options)), nil
	}
	return slog.New(slog.NewTextHandler(streams.Err, options)), nil
}
