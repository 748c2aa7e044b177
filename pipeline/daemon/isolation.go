// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import "context"

// tellIsolation says in the log and the metrics what keeps renderers from this machine, as it depends on the kernel and on
// who runs the daemon.
func (p *components) tellIsolation(ctx context.Context) {
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

// noteNamespaces says the same of one layer, which may come and go while the daemon runs.
func (p *components) noteNamespaces(have bool, err error) {
	p.metrics.Isolation(map[string]bool{"namespaces": have})
	if have {
		p.o.Log.Info("renderers have namespaces of their own again")
		return
	}
	p.o.Log.Warn("renderers are started without namespaces of their own; other layers are as before", "error", err)
}
