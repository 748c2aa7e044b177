// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// Defaults of the agent: pkg/bootstrap of Istio 1.7 and later for the first, 1.12 and later for the second.
const (
	defaultTerminationDrain = 5 * time.Second
	defaultMinimumDrain     = 5 * time.Second
)

// exitOnZero reports whether the agent waits for the last connection.
func exitOnZero(proxy *container) bool {
	v, _ := proxy.literalEnvValue("EXIT_ON_ZERO_ACTIVE_CONNECTIONS")
	return v == "true" || v == "1" || v == "True" || v == "TRUE" || v == "t" || v == "T"
}

// terminationDrain is the time that the agent sleeps after SIGTERM, and where it is set.
func terminationDrain(p *pod) (d time.Duration, set bool) {
	if s, ok := p.proxyConfig["terminationDrainDuration"].(string); ok {
		if d, err := time.ParseDuration(s); err == nil {
			return d, true
		}
	}
	if s, ok := p.proxy.literalEnvValue("TERMINATION_DRAIN_DURATION_SECONDS"); ok {
		if d, err := time.ParseDuration(s + "s"); err == nil {
			return d, true
		}
	}
	return defaultTerminationDrain, false
}

func minimumDrain(proxy *container) time.Duration {
	if s, ok := proxy.literalEnvValue("MINIMUM_DRAIN_DURATION"); ok {
		if d, err := time.ParseDuration(s); err == nil {
			return d
		}
	}
	return defaultMinimumDrain
}

// drainTime returns the minimum time from SIGTERM to the proxy's end.
func drainTime(p *pod) time.Duration {
	switch {
	case p.proxy.lifecycleHook("preStop").drainsProxyAtOnce():
		return 0
	case exitOnZero(p.proxy):
		return minimumDrain(p.proxy)
	}
	d, _ := terminationDrain(p)
	return d
}

func checkGracePeriod(p *pod) []finding {
	if p.proxy == nil {
		return nil
	}
	grace, set := p.gracePeriod()
	var longest time.Duration
	var slow container
	for _, c := range p.applicationContainers() {
		if h := c.lifecycleHook("preStop"); h.wait > longest {
			longest, slow = h.wait, c
		}
	}
	own := p.proxy.lifecycleHook("preStop").wait
	drain := drainTime(p)
	need, what := own+drain, fmt.Sprintf("the proxy's preStop hook (%s) and drain (%s) take", formatSeconds(own), formatSeconds(drain))
	if own == 0 {
		what = fmt.Sprintf("the proxy's drain (%s) takes", formatSeconds(drain))
	}
	if p.hasNativeProxy() && longest > 0 && max(longest, own)+drain > need {
		need = max(longest, own) + drain
		what = fmt.Sprintf("the preStop hook of %s (%s) and then the proxy's drain (%s) take", slow.name, formatSeconds(longest), formatSeconds(drain))
	}
	path := "spec.terminationGracePeriodSeconds"
	name := "terminationGracePeriodSeconds"
	if !set {
		name += " (30 by default)"
	}
	switch {
	case need > grace:
		return []finding{{
			path: path, current: int64(grace / time.Second), proposed: int64(math.Ceil(need.Seconds())) + 5, container: proxyName,
			message: fmt.Sprintf("%s is %s, and %s at least %s: the proxy is killed before it has drained", name, formatSeconds(grace), what, formatSeconds(need)),
		}}
	case longest >= grace && longest > 0:
		return []finding{{
			path: path, current: int64(grace / time.Second), proposed: int64(math.Ceil(longest.Seconds())) + 5, container: slow.name,
			message: fmt.Sprintf("%s is %s, and the preStop hook of %s takes %s: the container is killed without time to end", name, formatSeconds(grace), slow.name, formatSeconds(longest)),
		}}
	}
	return nil
}

func checkIgnoredDrain(p *pod) []finding {
	if p.proxy == nil || !exitOnZero(p.proxy) || p.proxy.lifecycleHook("preStop").drainsProxyAtOnce() {
		return nil
	}
	d, set := terminationDrain(p)
	if !set {
		return nil
	}
	return []finding{{
		path: p.proxy.path + ".env", container: proxyName,
		message: fmt.Sprintf("terminationDrainDuration is %s, but EXIT_ON_ZERO_ACTIVE_CONNECTIONS is set: the proxy drains for %s (MINIMUM_DRAIN_DURATION) and then until the last connection ends", formatSeconds(d), formatSeconds(minimumDrain(p.proxy))),
	}}
}

func checkTwoWaits(p *pod) []finding {
	if p.proxy == nil || !exitOnZero(p.proxy) {
		return nil
	}
	h := p.proxy.lifecycleHook("preStop")
	if h.drainsProxyAtOnce() || !h.loop && h.wait == 0 {
		return nil
	}
	how := "waits for " + formatSeconds(h.wait)
	if h.loop {
		how = "waits in a loop"
	}
	return []finding{{
		path: h.path, container: proxyName,
		message: "the proxy's preStop hook " + how + ", and EXIT_ON_ZERO_ACTIVE_CONNECTIONS makes the proxy wait once more after it",
	}}
}

var (
	listenerList = lazyregexp.New(`(?:^|[\s;&|($'"/])(?:netstat|ss|lsof)\s`)
	onePort      = lazyregexp.New(`:\d{2,5}\b|sport|dport`)
)

func checkListenerWait(p *pod) []finding {
	if p.proxy == nil {
		return nil
	}
	h := p.proxy.lifecycleHook("preStop")
	line := h.commandLine()
	if !h.loop || !listenerList.MatchString(line) || onePort.MatchString(line) || strings.Contains(line, "pilot-agent") {
		return nil
	}
	return []finding{{
		path: h.path, container: proxyName,
		message: "the preStop hook waits until no port is open, but pilot-agent listens in the same container until the hook has ended: it waits for the whole grace period",
	}}
}

// Images whose servers close their listeners when they begin to stop. The nginx image stops by SIGQUIT and httpd by SIGWINCH, the graceful
// shutdowns of nginx and Apache; the controller of ingress-nginx ends its nginx with a quit. notServers are parts of the names of images
// that only accompany nginx.
var (
	closeAtOnce = []string{"nginx", "openresty", "httpd"}
	notServers  = []string{"exporter", "agent", "operator", "reloader", "prometheus", "config", "gateway", "test", "tests", "docs", "ingress"}
)

// imageName returns the last part of the name of the container's image.
func (c container) imageName() string {
	image, _, _ := strings.Cut(textOf(c.fields["image"]), "@")
	name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return name
}

// closesAtOnce reports whether the container runs a server of closeAtOnce: its image's own program, or a command that names it.
func (c container) closesAtOnce() bool {
	line := strings.Join(append(c.stringList("command"), c.stringList("args")...), " ")
	image := textOf(c.fields["image"])
	parts := strings.FieldsFunc(c.imageName(), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	server := slices.ContainsFunc(closeAtOnce, func(name string) bool { return slices.Contains(parts, name) }) || strings.HasSuffix(c.imageName(), "nginx")
	switch {
	case strings.Contains(image, "ingress-nginx/controller"):
		return true
	case !server || slices.ContainsFunc(notServers, func(part string) bool { return slices.Contains(parts, part) }):
		return false
	}
	return line == "" || slices.ContainsFunc(closeAtOnce, func(name string) bool { return strings.Contains(line, name) }) || strings.HasPrefix(line, "-")
}

// checkListenerClosesAtOnce covers hooks that PR104 accepts.
func checkListenerClosesAtOnce(p *pod) []finding {
	if !p.hasClassicProxy() || exitOnZero(p.proxy) || len(checkListenerWait(p)) > 0 {
		return nil
	}
	h := p.proxy.lifecycleHook("preStop")
	if !h.loop || !listenerList.MatchString(h.commandLine()) {
		return nil
	}
	var out []finding
	for _, c := range p.applicationContainers() {
		name := c.imageName()
		if c.closesAtOnce() && !c.lifecycleHook("preStop").exists {
			out = append(out, finding{
				path: c.path, container: c.name,
				message: fmt.Sprintf("the proxy's preStop hook waits for listeners, and %s in container %s closes its own on SIGTERM: the hook ends at once", name, c.name),
			})
		}
	}
	return out
}

// inDistroless are the programs that the distroless image has.
var inDistroless = []string{"pilot-agent", "envoy"}

func checkDistrolessHook(p *pod) []finding {
	if p.proxy == nil || !p.proxy.isDistrolessImage() {
		return nil
	}
	var out []finding
	for _, name := range []string{"postStart", "preStop"} {
		h := p.proxy.lifecycleHook(name)
		if program := h.programBaseName(); program != "" && !slices.Contains(inDistroless, program) {
			out = append(out, finding{
				path: h.path + ".exec.command", container: proxyName, current: h.command[0],
				message: fmt.Sprintf("the %s hook runs %s, which the distroless image %s does not have", name, program, textOf(p.proxy.fields["image"])),
			})
		}
	}
	return out
}

func checkProxyEndsFirst(p *pod) []finding {
	end, known := earliestEnd(p)
	if !known {
		return nil
	}
	var out []finding
	for _, c := range p.applicationContainers() {
		h := c.lifecycleHook("preStop")
		if h.wait <= end {
			continue
		}
		message := fmt.Sprintf("the preStop hook of %s takes %s, and the proxy ends %s after the pod starts to terminate: the application has no network from then on",
			c.name, formatSeconds(h.wait), formatSeconds(end))
		if exitOnZero(p.proxy) && !p.proxy.lifecycleHook("preStop").drainsProxyAtOnce() {
			message = fmt.Sprintf("the preStop hook of %s takes %s, and the proxy may end %s after the pod starts to terminate, as soon as no connection is open: the application "+
				"has no network from then on; set MINIMUM_DRAIN_DURATION to more than the hook takes", c.name, formatSeconds(h.wait), formatSeconds(end))
		}
		out = append(out, finding{path: h.path, container: c.name, message: message})
	}
	return out
}

func checkProxyMayEndFirst(p *pod) []finding {
	end, known := classicEnd(p)
	grace, _ := p.gracePeriod()
	if !known || p.runsToCompletion() || end >= grace || len(checkProxyEndsFirst(p)) > 0 {
		return nil
	}
	return []finding{{
		path: p.proxy.path, container: proxyName,
		message: fmt.Sprintf("the proxy ends %s after the pod starts to terminate, and the application may run for %s", formatSeconds(end), formatSeconds(grace)),
	}}
}

// classicEnd returns when an ordinary sidecar ends after the pod is asked to stop, or false if it waits for
// something.
func classicEnd(p *pod) (time.Duration, bool) {
	if p.proxy == nil || exitOnZero(p.proxy) {
		return 0, false
	}
	return earliestEnd(p)
}

// earliestEnd is when an ordinary sidecar may end at the earliest: with EXIT_ON_ZERO_ACTIVE_CONNECTIONS, after the least drain.
func earliestEnd(p *pod) (time.Duration, bool) {
	if !p.hasClassicProxy() {
		return 0, false
	}
	h := p.proxy.lifecycleHook("preStop")
	if h.loop || h.exists && h.wait == 0 && !h.drainsProxyAtOnce() {
		return 0, false
	}
	return h.wait + drainTime(p), true
}

func checkSettingsAfterDrain(p *pod) []finding {
	if p.proxy == nil || !p.proxy.lifecycleHook("preStop").drainsProxyAtOnce() {
		return nil
	}
	var set []string
	if _, ok := terminationDrain(p); ok {
		set = append(set, "terminationDrainDuration")
	}
	if exitOnZero(p.proxy) {
		set = append(set, "EXIT_ON_ZERO_ACTIVE_CONNECTIONS")
	}
	if _, ok := p.proxy.literalEnvValue("MINIMUM_DRAIN_DURATION"); ok {
		set = append(set, "MINIMUM_DRAIN_DURATION")
	}
	if len(set) == 0 {
		return nil
	}
	return []finding{{
		path: p.proxy.path + ".env", container: proxyName,
		message: "the settings " + strings.Join(set, " and ") + " have no effect: the preStop hook drains the proxy, and the agent then exits as soon as it gets SIGTERM",
	}}
}

// formatSeconds writes a duration as people write it in a manifest.
func formatSeconds(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}
