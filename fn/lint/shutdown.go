// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// stopSettings are flags that set how long sidecars keep running after SIGTERM, and the equivalent variables; those
// of one container add up. A number is seconds. Sources: cmd/root.go of the Cloud SQL Auth Proxy 2, which accepts
// connections for the minimum and ends after the maximum at the latest; cmd/daprd/options of Dapr 1.18.
var stopSettings = []struct{ flag, env string }{
	{"--max-sigterm-delay", "CSQL_PROXY_MAX_SIGTERM_DELAY"},
	{"--dapr-block-shutdown-duration", ""},
	{"--dapr-graceful-shutdown-seconds", ""},
}

// stopWait returns how long the container keeps running after SIGTERM by its settings.
func (c container) stopWait() time.Duration {
	var sum time.Duration
	for _, s := range stopSettings {
		text := c.flagValue(s.flag)
		for _, arg := range append(c.stringList("command"), c.stringList("args")...) {
			if value, ok := strings.CutPrefix(arg, s.flag+"="); ok {
				text = value
			}
		}
		if value, ok := c.literalEnvValue(s.env); ok && s.env != "" && text == "" {
			text = value
		}
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			sum += time.Duration(n) * time.Second
		} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
			sum += d
		}
	}
	return sum
}

// checkStopsOfSidecars leaves to PR101 what Istio's proxy and the application take alone.
// Source of the order: killContainersWithSyncResult in pkg/kubelet/kuberuntime of Kubernetes; preStop hooks begin together.
func checkStopsOfSidecars(p *pod) []finding {
	var first, natives time.Duration // what ends first, and what then follows in turn
	var parts []string
	others := false
	slowest := ""
	for _, c := range p.allContainers() {
		hook, wait := c.lifecycleHook("preStop").wait, c.stopWait()
		others = others || wait > 0
		if p.proxy != nil && c.name == p.proxy.name {
			wait = drainTime(p)
		}
		if c.isNativeSidecar() {
			natives += wait
			if wait > 0 {
				parts = append([]string{fmt.Sprintf("%s %s", c.name, formatSeconds(wait))}, parts...) // the last one stops first
			}
			wait = 0
		} else if c.init {
			continue
		}
		if hook+wait > first {
			first, slowest = hook+wait, fmt.Sprintf("%s %s", c.name, formatSeconds(hook+wait))
		}
	}
	grace, set := p.gracePeriod()
	if !others || first+natives <= grace || len(checkGracePeriod(p)) > 0 {
		return nil
	}
	if slowest != "" {
		parts = append([]string{slowest}, parts...)
	}
	name := "terminationGracePeriodSeconds"
	if !set {
		name += " (30 by default)"
	}
	return []finding{{
		path: "spec.terminationGracePeriodSeconds", current: int64(grace / time.Second), proposed: int64(math.Ceil((first + natives).Seconds())) + 5,
		message: fmt.Sprintf("%s is %s, and the containers may take %s to stop (%s): the rest is killed", name, formatSeconds(grace),
			formatSeconds(first+natives), strings.Join(parts, ", then ")),
	}}
}
