// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/telemetry"
)

// reportIsolation reports in the log and the metrics how renderers are isolated from this machine, which depends on
// the kernel and on the user that runs the daemon.
func reportIsolation(ctx context.Context, pool *render.Pool, metrics *telemetry.Metrics, log *slog.Logger) {
	found, err := pool.Isolation(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		log.Error("no renderer could be started", "error", err)
		return
	}
	metrics.Isolation(found.Layers())
	if problem := found.Problem(); problem != "" {
		log.Warn(problem, "by", found.String())
		return
	}
	log.Info("renderers are isolated", "by", found.String())
}

// reportNamespaceIsolation reports the same for one layer, whose availability may change while the daemon runs.
func reportNamespaceIsolation(have bool, err error, metrics *telemetry.Metrics, log *slog.Logger) {
	metrics.Isolation(map[string]bool{"namespaces": have})
	if have {
		log.Info("renderers have namespaces of their own again")
		return
	}
	log.Warn("renderers are started without namespaces of their own; other layers are as before", "error", err)
}
