// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import "github.com/prerig/prerig/pipeline/internal/process/watchdog"

// openWatchdog has what hangs logged and counted.
func (p *components) openWatchdog() {
	p.watchdog = &watchdog.Watchdog{Log: p.o.Log, LeftBehind: p.metrics.LeftBehind}
	if limits := p.o.Watchdog; limits != nil {
		p.watchdog.Grace, p.watchdog.Longest = limits.Grace, limits.Longest
	}
}
