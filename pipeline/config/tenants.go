// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// ParsedTenants returns the tenants, none where pipelines may lie anywhere.
func (c *Config) ParsedTenants() ([]tenant.Tenant, error) {
	var out []tenant.Tenant
	var errs []error
	for i, t := range c.Tenants {
		parsed, err := tenant.New(t.Directory, t.Namespaces, t.Sources, t.Targets, t.Notifications)
		if err != nil {
			errs = append(errs, fmt.Errorf("configuration tenants[%d]: %w", i, err))
		}
		out = append(out, parsed)
	}
	return out, errors.Join(errs...)
}
