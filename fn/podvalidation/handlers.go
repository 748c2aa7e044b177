// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podvalidation

import "strconv"

// defaultGracePeriod is the grace period of a pod that does not name one, in seconds.
const defaultGracePeriod = 30

// checkProbesAndHooks checks the probes and hooks of a container that may have them.
func (c *containerChecker) checkProbesAndHooks() {
	at, m := c.at, c.container
	for _, key := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if probe := mapOf(m[key]); probe != nil {
			c.checkProbe(at.field(key), key, probe)
		}
	}
	lifecycle := mapOf(m["lifecycle"])
	for _, key := range []string{"postStart", "preStop"} {
		if hook := mapOf(lifecycle[key]); hook != nil {
			c.checkProbeHandler(at.field("lifecycle").field(key), key, hook, "exec", "httpGet", "tcpSocket", "sleep")
		}
	}
}

func (c *checker) checkProbe(at place, key string, probe map[string]any) {
	c.checkProbeHandler(at, key, probe, "exec", "httpGet", "tcpSocket", "grpc")
	for _, name := range []string{"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"} {
		if n, ok := integer(probe[name]); ok && n < 0 {
			c.rejectField(at.field(name), n, "%s of the %s is negative", name, key)
		}
	}
	if n, ok := integer(probe["successThreshold"]); ok && n > 1 && key != "readinessProbe" {
		c.rejectField(at.field("successThreshold"), n, "successThreshold of the %s is %d, and has to be 1", key, n)
	}
	n, ok := integer(probe["terminationGracePeriodSeconds"])
	switch {
	case ok && key == "readinessProbe":
		c.rejectField(at.field("terminationGracePeriodSeconds"), n,
			"a readinessProbe cannot have terminationGracePeriodSeconds")
	case ok && n <= 0:
		c.rejectField(at.field("terminationGracePeriodSeconds"), n,
			"terminationGracePeriodSeconds of the %s is not above 0", key)
	}
}

// checkProbeHandler checks what a probe or hook does.
func (c *checker) checkProbeHandler(at place, what string, m map[string]any, kinds ...string) {
	n := 0
	for _, kind := range kinds {
		action := mapOf(m[kind])
		if action == nil {
			continue
		}
		n++
		here := at.field(kind)
		switch kind {
		case "exec":
			if len(listOf(action["command"])) == 0 {
				c.rejectField(here.field("command"), nil, "the %s runs no command", what)
			}
		case "sleep":
			c.checkSleepAction(here.field("seconds"), what, action)
		case "grpc":
			if port, ok := integer(action["port"]); !ok || !isPort(port) {
				c.rejectField(here.field("port"), action["port"], "the port %v of the %s is not between 1 and 65535",
					action["port"], what)
			}
		default:
			c.handlerPort(here.field("port"), what, action["port"])
			if v := action["scheme"]; kind == "httpGet" && !oneOf(v, "HTTP", "HTTPS") {
				c.rejectField(here.field("scheme"), v, "the scheme of the %s is %v, and neither HTTP nor HTTPS", what,
					v)
			}
		}
	}
	switch {
	case n > 1:
		c.rejectField(at, nil, "the %s has %d handlers, and can have one", what, n)
	case n == 0:
		c.rejectField(at, nil, "the %s has no handler", what)
	}
}

func (c *checker) handlerPort(at place, what string, port any) {
	if name, ok := port.(string); ok {
		if _, err := strconv.ParseUint(name, 10, 16); err == nil {
			c.rejectField(at, port, "the port %q of the %s is a number in quotes, which is a name; remove the quotes", name, what)
		} else if !isPortName(name) {
			c.rejectField(at, port, "the port %q of the %s is neither a number nor the name of a port", name, what)
		}
		return
	}
	if n, ok := integer(port); !ok || !isPort(n) {
		c.rejectField(at, port, "the port %v of the %s is not between 1 and 65535", port, what)
	}
}

func (c *checker) checkSleepAction(at place, what string, action map[string]any) {
	grace, ok := integer(c.spec["terminationGracePeriodSeconds"])
	if !ok {
		grace = defaultGracePeriod
	}
	if n, ok := integer(action["seconds"]); ok && (n < 0 || n > grace) {
		c.rejectField(at, n, "the %s sleeps %d seconds, and has to sleep at most terminationGracePeriodSeconds, %d",
			what, n, grace)
	}
}
