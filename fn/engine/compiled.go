// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"reflect"
	"sync"

	"github.com/prerig/prerig/fn/istio"
)

// compiledIstio keeps what a policy's configuration was compiled to, for the next run of an Injector: to parse its templates takes
// longer than to inject a pod. Another configuration, as items may bring one, takes its place.
type compiledIstio struct {
	mu       sync.Mutex
	options  istio.Options
	injector *istio.Injector
}

// get returns the injector of a configuration. Objects of the cluster are not kept.
func (c *compiledIstio) get(o istio.Options) (*istio.Injector, error) {
	if len(o.ProxyConfigs) > 0 {
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
