// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// openQueue opens the queue of a configuration: in this process, or on NATS servers.
func openQueue(ctx context.Context, c *config.Config, log *slog.Logger) (*queue.Queue, error) {
	store, err := c.NATS.StoreSize()
	if err != nil {
		return nil, err
	}
	o := queue.Options{Replicas: c.NATS.Replicas, Prefix: c.NATS.Prefix, MaxStore: store, AckWait: c.NATS.AckWait, Log: log}
	if c.NATS.URL == "" {
		o.Dir, o.Replicas = filepath.Join(c.State, "queue"), 1
		return queue.Open(ctx, o)
	}
	o.URL = c.NATS.URL
	log.Info("connecting to NATS", "servers", serverAddresses(c.NATS.URL))
	o.NATS = natsOptions(c)
	// A cluster that is still electing its leaders returns errors for a while.
	for try := 0; ; try++ {
		q, err := queue.Open(ctx, o)
		if err == nil {
			return q, nil
		}
		if try == 20 || ctx.Err() != nil {
			return nil, fmt.Errorf("opening the queue at %s: %w", serverAddresses(c.NATS.URL), err)
		}
		log.Warn("the queue cannot be reached yet", "servers", serverAddresses(c.NATS.URL), "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// natsOptions are how the servers of a configuration are connected to.
func natsOptions(c *config.Config) (options []nats.Option) {
	if c.NATS.Credentials != "" {
		options = append(options, nats.UserCredentials(c.NATS.Credentials))
	}
	if c.NATS.CA != "" {
		options = append(options, nats.RootCAs(c.NATS.CA))
	}
	return options
}

// serverAddresses returns the addresses of NATS without any leading credentials.
func serverAddresses(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		all[i] = strings.TrimSpace(one[strings.LastIndexByte(one, '@')+1:])
	}
	return strings.Join(all, ",")
}
