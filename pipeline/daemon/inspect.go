// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/chart"
)

// Inspection contains the parts of a daemon of a configuration, except its queue and its state, for read-only use.
type Inspection struct {
	Catalog *catalog.Catalog
	Fetcher *source.Fetcher
	Targets *publish.Targets
	// Builder has no renderer.
	Builder *build.Builder
	Secrets secret.Reader
	Dialer  *egress.Dialer
	// Skipped are the keys of the configuration whose pipelines were not read, as a server would have been asked.
	Skipped []string
}

// Look is how an inspection asks servers.
type Look struct {
	// Offline asks none: pipelines that servers have are skipped.
	Offline bool
	// Timeout bounds what is read of each.
	Timeout time.Duration
}

// skipServers removes the settings that only servers have from a configuration, and returns their keys.
func skipServers(c *config.Config) (keys []string) {
	if len(c.Repositories()) > 0 {
		keys = append(keys, "pipelines_git")
		c.PipelinesGit, c.PipelinesGitList = config.PipelinesGit{}, nil
	}
	if c.Kubernetes.Pipelines {
		keys = append(keys, "kubernetes.pipelines")
		c.Kubernetes.Pipelines = false
	}
	return keys
}

// Inspect opens the parts that a daemon of the configuration would, with the same rules. look bounds the requests
// to servers. The state directory is not touched: files that have to be written are written to dir, which the
// caller owns. watch, which may be nil, wraps the reader of secrets. Watches of a cluster end with ctx. A catalog
// that cannot be read is an error in addition to the rest.
func Inspect(ctx context.Context, c *config.Config, o Options, look Look, dir string, watch func(secret.Reader) secret.Reader) (*Inspection, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	own := *c
	own.State = dir
	var skipped []string
	if look.Offline {
		skipped = skipServers(&own)
	}
	opening, cancel := context.WithTimeout(ctx, look.Timeout)
	defer cancel()
	limits, err := own.RenderLimits()
	if err != nil {
		return nil, err
	}
	reach, rules, err := own.ParsedEgress()
	if err != nil {
		return nil, err
	}
	dialer := egress.NewDialer(rules)
	cluster, opened := openCluster(opening, ctx, &own, o, nil)
	var pipelines *catalog.Catalog
	secrets := newSecrets(&own, cluster, &pipelines)
	if watch != nil {
		secrets = watch(secrets)
	}
	fetcher := newFetcher(&own, limits, dialer, reach, secrets)
	if opened == nil && (len(skipped) == 0 || own.Pipelines != "") {
		pipelines, opened = openCatalog(opening, &own, fetcher, nil, cluster, false, o.Log)
	}
	lock := func(context.Context, string) (func(), error) {
		return nil, errors.New("an inspection publishes nothing")
	}
	targets := publish.NewTargets(fetcher, secrets, lock, limits.Read, nil)
	targets.Hosts = publish.NewHosts(secrets, dialer)
	bases, err := own.RemotePatterns()
	if err != nil {
		return nil, err
	}
	builder := &build.Builder{
		Validator: gate.InstalledValidator(), Policies: own.Policies, Limits: limits, Repositories: fetcher, Bases: bases,
		Charts:  chart.New(chart.Options{StateDir: dir, Secrets: secrets, Dialer: dialer, Sources: reach.Sources}),
		Objects: cluster.policyObjects(), Cluster: cluster.policyCompleter(), Version: o.Version,
	}
	return &Inspection{
		Catalog: pipelines, Fetcher: fetcher, Targets: targets, Builder: builder, Secrets: secrets, Dialer: dialer, Skipped: skipped,
	}, opened
}

// CheckQueue returns an error if the queue's servers cannot be used; without any, the queue is embedded in the
// daemon and no request is sent.
func CheckQueue(ctx context.Context, c *config.Config) error {
	if c.NATS.URL == "" {
		return nil
	}
	timeout := nats.GetDefaultOptions().Timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	connection, err := nats.Connect(c.NATS.URL, append(natsOptions(c), nats.Timeout(timeout), nats.MaxReconnects(0))...)
	if err != nil {
		return fmt.Errorf("connecting to NATS at %s: %w", serverAddresses(c.NATS.URL), err)
	}
	defer connection.Close()
	stream, err := connection.JetStream(nats.Context(ctx))
	if err == nil {
		_, err = stream.AccountInfo()
	}
	if err != nil {
		return fmt.Errorf("asking NATS at %s for JetStream: %w", serverAddresses(c.NATS.URL), err)
	}
	return nil
}

// ownHeads holds commits of a repository of pipelines that are not shared with other processes.
type ownHeads struct {
	mu       sync.Mutex
	head     status.Head
	revision uint64
}

// Head implements catalog.Heads.
func (h *ownHeads) Head(context.Context) (status.Head, uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head, h.revision, nil
}

// SaveHead implements catalog.Heads.
func (h *ownHeads) SaveHead(_ context.Context, head status.Head, revision uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if revision != h.revision {
		return 0, queue.ErrChanged
	}
	h.head, h.revision = head, h.revision+1
	return h.revision, nil
}
