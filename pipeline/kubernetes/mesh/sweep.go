// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"errors"
	"strings"
)

// Sweep releases the completed state of policies that are objects of the cluster and exist neither now nor in the
// previous Sweep: one may be recreated, and a new one may not be known here yet. stored lists the IDs of the
// policies with stored state. Policies in files stay.
func (c *Completer) Sweep(ctx context.Context, stored []string, isThere func(namespace, name string) bool) error {
	c.sweeping.Lock()
	defer c.sweeping.Unlock()
	remembered := map[string]bool{}
	for _, id := range stored {
		remembered[id] = true
	}
	var errs []error
	missing := map[string]bool{}
	for id := range c.knownPolicyIDs(stored) {
		key, object := strings.CutPrefix(id, objectPrefix)
		namespace, name, _ := strings.Cut(key, "/")
		if !object || isThere(namespace, name) {
			continue
		}
		missing[id] = true
		if !c.missing[id] {
			continue
		}
		c.mu.Lock()
		delete(c.known, id)
		c.mu.Unlock()
		if c.Memory != nil && remembered[id] {
			errs = append(errs, c.Memory.Forget(ctx, memoryName(id)))
		}
	}
	c.missing = missing
	return errors.Join(errs...)
}

// knownPolicyIDs returns those of the policies that are known, and others.
func (c *Completer) knownPolicyIDs(others []string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]bool{}
	for id := range c.known {
		out[id] = true
	}
	for _, id := range others {
		out[id] = true
	}
	return out
}
