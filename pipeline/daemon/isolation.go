// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import "context"

// reportIsolation reports in the log and the metrics how renderers are isolated from this machine, which depends on
// the kernel and on the user that runs the daemon.
func (p *components) reportIsolation(ctx context.Context) {
	found, err := p.pool.Isolation(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.o.Log.Error("no renderer could be started", "error", err)
		return
	}
	p.metrics.Isolation(found.Layers())
	if problem := found.Problem(); problem != "" {
		p.o.Log.Warn(problem, "by", found.String())
		return
	}
	p.o.Log.Info("renderers are isolated", "by", found.String())
}

// reportNamespaceIsolation reports the same for one layer, whose availability may change while the daemon runs.
func (p *components) reportNamespaceIsolation(have bool, err error) {
	p.metrics.Isolation(map[string]bool{"namespaces": have})
	if have {
		p.o.Log.Info("renderers have namespaces of their own again")
		return
	}
	p.o.Log.Warn("renderers are started without namespaces of their own; other layers are as before", "error", err)
}
