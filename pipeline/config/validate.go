// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// addError records what is wrong with the value of a key.
type addError func(key, format string, args ...any)

// setting is one of several values that the same rule is for, in the order in which errors name them.
type setting[T any] struct {
	key   string
	value T
}

// Validate returns everything that is wrong with the configuration, each with its key, in the same order each time.
func (c *Config) Validate() error {
	var errs []error
	add := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("configuration %s: %s", key, fmt.Sprintf(format, args...)))
	}
	c.validateServers(add)
	c.validatePipelines(add)
	validateVerify(c.Verify, add)
	c.Artifacts.validate(add, c.NATS.URL, c.Workers)
	c.Admin.OIDC.validate(add, c.ExternalURL)
	c.validateWork(add)
	c.NATS.validate(add)
	c.validateObservability(add)
	// Some values are parsed where they are used.
	_, limits := c.RenderLimits()
	_, store := c.NATS.StoreSize()
	_, previews := c.PreviewsSize()
	_, builds := c.BuildCacheSize()
	_, patterns := c.RemotePatterns()
	_, tenants := c.ParsedTenants()
	_, _, egress := c.ParsedEgress()
	return errors.Join(append(errs, limits, store, previews, builds, patterns, tenants, egress)...)
}

// validateServers checks the addresses that the daemon listens on, and its external URL.
func (c *Config) validateServers(add addError) {
	// Without an address one would be chosen that is open to everybody; page and health checks may do without.
	for _, address := range []setting[string]{{"admin.listen", c.Admin.Listen}, {"health.listen", c.Health.Listen}, {"listen", c.Listen}} {
		if _, _, err := net.SplitHostPort(address.value); err != nil && (address.value != "" || address.key == "listen") {
			add(address.key, "must be HOST:PORT, found %q%s", address.value, portHint(address.value))
		}
	}
	if c.Listen != "" && c.Listen == c.Admin.Listen && !strings.HasSuffix(c.Listen, ":0") {
		add("admin.listen", "is %s, the address of listen; set another one", c.Listen)
	}
	for _, tls := range []setting[TLS]{{"admin.tls", c.Admin.TLS}, {"tls", c.TLS}} {
		if (tls.value.Certificate == "") != (tls.value.Key == "") {
			add(tls.key, "must have both certificate and key, or neither")
		}
	}
	if c.Admin.Insecure && c.Admin.NamesItsUsers() {
		add("admin.insecure", "shows everything to everybody, and cannot be given where users have names (admin.tokens, admin.oidc)")
	}
	if !absentOrHTTP(c.ExternalURL) {
		add("external_url", "must be an http:// or https:// URL without credentials")
	}
}

// portHint suggests an address for a port alone.
func portHint(text string) string {
	if _, err := strconv.ParseUint(text, 10, 16); err != nil {
		return ""
	}
	return fmt.Sprintf(", did you mean 127.0.0.1:%s or :%s?", text, text)
}

// validateWork checks how much is done at once, how often, and where it is kept.
func (c *Config) validateWork(add addError) {
	if c.State == "" {
		add("state", "must be given")
	}
	for _, bound := range []setting[int]{{"workers", c.Workers}, {"previews.at_once", c.Previews.AtOnce}, {"debounce", int(c.Debounce)}} {
		if bound.value < 0 {
			add(bound.key, "must not be negative")
		}
	}
	for _, count := range []setting[int]{{"in_flight", c.InFlight}, {"history", c.History}} {
		if count.value < 1 {
			add(count.key, "must be at least 1, found %d", count.value)
		}
	}
	for _, wait := range []setting[time.Duration]{
		{"debounce", c.Debounce}, {"limits.timeout", c.Limits.Timeout}, {"limits.max_timeout", c.Limits.MaxTimeout},
		{"removals.delay", c.Removals.Delay},
		{"pipelines_git.interval", c.PipelinesGit.Interval},
	} {
		if 0 < wait.value && wait.value < time.Millisecond {
			add(wait.key, "must be a time with its unit, such as 5s")
		}
	}
}

func (n NATS) validate(add addError) {
	if n.Replicas < 1 {
		add("nats.replicas", "must be at least 1, found %d", n.Replicas)
	}
	if strings.ContainsFunc(n.Prefix, notInStreamNames) {
		add("nats.prefix", "must be of letters, digits, - and _, found %q", n.Prefix)
	}
	if n.AckWait < time.Second {
		add("nats.ack_wait", "must be at least 1s")
	}
}

// validateObservability checks the configuration of logs, metrics and traces.
func (c *Config) validateObservability(add addError) {
	if c.Metrics.Pipelines < 0 {
		add("metrics.pipelines", "must not be negative")
	}
	if !absentOrHTTP(c.Tracing.Endpoint) {
		add("tracing.endpoint", "must be an http:// or https:// URL without credentials, which tracing.headers is for")
	}
	if c.Tracing.Ratio < 0 || c.Tracing.Ratio > 1 {
		add("tracing.ratio", "must be between 0 and 1")
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		add("log.format", "must be text or json, found %q", c.Log.Format)
	}
	if _, err := c.Level(); err != nil {
		add("log.level", "must be debug, info, warn or error, found %q", c.Log.Level)
	}
}

// notInStreamNames reports whether names of streams and buckets cannot contain a character.
func notInStreamNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
