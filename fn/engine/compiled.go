// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/builtin"
)

// compiledIstio caches the compiled configuration of a policy for the next run of an Injector: parsing its
// templates is slower than injecting a pod. A different configuration, which items may contain, replaces it.
type compiledIstio struct {
	mu       sync.Mutex
	options  istio.Options
	injector *istio.Injector
	builtIn  *v1alpha1.InjectionPolicy // that the policy names, once it was read
}

// builtInPolicy returns the built-in policy istio for a version. It must not be modified.
func (c *compiledIstio) builtInPolicy(v istio.Version) (*v1alpha1.InjectionPolicy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.builtIn != nil && c.builtIn.Spec.Istio.Version == v.String() {
		return c.builtIn, nil
	}
	p, err := readBuiltIn(builtin.Policy(v))
	if err != nil {
		return nil, fmt.Errorf("reading the built-in policy %s: %w", builtin.Name, err)
	}
	c.builtIn = p
	return p, nil
}

// injectorForOptions returns the injector of a configuration, and keeps it where that is asked for: not one with
// objects of the items.
func (c *compiledIstio) injectorForOptions(o istio.Options, keep bool) (*istio.Injector, error) {
	if !keep {
		return istio.New(o)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.injector != nil && reflect.DeepEqual(c.options, o) {
		return c.injector, nil
	}
	injector, err := istio.New(o)
	if err != nil {
		return nil, err
	}
	c.options, c.injector = o, injector
	return injector, nil
}
