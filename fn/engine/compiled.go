// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/policies"
)

// compiledIstio caches the compiled configuration of a policy for the next run of an Injector: parsing its
// templates takes longer than injecting a pod. A different configuration, which items may contain, replaces it.
type compiledIstio struct {
	mu       sync.Mutex
	options  istio.Options
	injector *istio.Injector
	builtIn  *v1alpha1.InjectionPolicy // that the policy names, once it was read
}

// builtInPolicy returns the built-in policy that a policy names. It must not be modified.
func (c *compiledIstio) builtInPolicy(name string) (*v1alpha1.InjectionPolicy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.builtIn != nil {
		return c.builtIn, nil
	}
	text, ok := policies.Get(name)
	if !ok {
		return nil, fmt.Errorf("finding the built-in policy %q%s: there are %s", name, strict.DidYouMean(name, policies.Names()), strings.Join(policies.Names(), ", "))
	}
	p, err := readBuiltIn(text)
	if err != nil {
		return nil, fmt.Errorf("reading the built-in policy %s: %w", name, err)
	}
	c.builtIn = p
	return p, nil
}

// get returns the injector of a configuration, and keeps it where that is asked for: not one with objects of the items.
func (c *compiledIstio) get(o istio.Options, keep bool) (*istio.Injector, error) {
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
