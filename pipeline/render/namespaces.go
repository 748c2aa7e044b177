// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"sync"
	"time"
)

// refusedFor is how long renderers are started without namespaces after a refusal that may pass.
const refusedFor = 10 * time.Second

// namespaceTrials remembers whether the system lets renderers have namespaces of their own. It is safe for concurrent use.
type namespaceTrials struct {
	told func(have bool, err error) // of each change; it may be nil

	mu      sync.Mutex
	had     bool
	refused bool
	lasting bool      // the refusal is one for good
	again   time.Time // when they are tried again
}

// startWithNamespaces starts a renderer, in namespaces where it can have some. A launch that fails with and without is
// no refusal of them.
func (n *namespaceTrials) startWithNamespaces(launch func(namespaces bool) (*rendererProcess, error)) (*rendererProcess, error) {
	if n.isBackingOff() {
		return launch(false)
	}
	p, err := launch(true)
	if err == nil {
		n.recordNamespacesAvailable()
		return p, nil
	}
	refused, lasting := refusesNamespaces(err)
	if !refused {
		return nil, err
	}
	p, failed := launch(false)
	if failed != nil {
		return nil, failed
	}
	n.recordNamespacesRefused(err, lasting)
	return p, nil
}

// isBackingOff reports whether they are not worth to be tried now.
func (n *namespaceTrials) isBackingOff() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused && (n.lasting || time.Now().Before(n.again))
}

func (n *namespaceTrials) recordNamespacesAvailable() {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := n.refused
	n.had, n.refused = true, false
	if changed && n.told != nil {
		n.told(true, nil)
	}
}

// recordNamespacesRefused reports the failure unless it is permanent from the first renderer on: Isolation covers that
// case.
func (n *namespaceTrials) recordNamespacesRefused(err error, lasting bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := !n.refused && (n.had || !lasting)
	n.refused, n.lasting, n.again = true, lasting, time.Now().Add(refusedFor)
	if changed && n.told != nil {
		n.told(false, err)
	}
}
