// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// InstalledPolicy is the policy of an installation, as a user of its cluster imports it.
type InstalledPolicy struct {
	Installation
	// Policy returns a new copy of the policy.
	Policy func() (*v1alpha1.InjectionPolicy, error)
}

// Policies returns the policies of the installations that the version knows. Only the command charts is run.
func Policies(ctx context.Context, o Options) (policies []InstalledPolicy, err error) {
	if o.Installations, err = supportedInstallations(o); err != nil {
		return nil, err
	}
	clusters, err := renderInstallations(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, c := range clusters {
		policies = append(policies, InstalledPolicy{c.Installation, c.importedPolicy})
	}
	return policies, nil
}
