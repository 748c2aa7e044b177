// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// Egress bounds what the daemon connects to for pipelines. Lists of URLs that are left out set no bound.
type Egress struct {
	// Sources, Targets and Notifications are what any pipeline may read, publish to and call, as URLs or with /* at the
	// end.
	Sources       []string `mapstructure:"sources"`
	Targets       []string `mapstructure:"targets"`
	Notifications []string `mapstructure:"notifications"`
	// Deny and Allow are addresses, prefixes such as 10.0.0.0/8, or private for all that are not of the internet. The
	// most specific one decides.
	Deny  []string `mapstructure:"deny"`
	Allow []string `mapstructure:"allow"`
}

// ParsedEgress returns what pipelines may name, and which addresses are connected to.
func (c *Config) ParsedEgress() (tenant.Reach, egress.Rules, error) {
	e := c.Egress
	reach, reachErr := tenant.NewReach(e.Sources, e.Targets, e.Notifications)
	rules, rulesErr := egress.NewRules(e.Allow, e.Deny)
	if err := errors.Join(reachErr, rulesErr); err != nil {
		return reach, rules, fmt.Errorf("configuration egress: %w", err)
	}
	return reach, rules, nil
}
