// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package isolation starts programs for input that is not trusted apart from the machine: in namespaces without a network, and with
// the layers that the renderer puts on.
package isolation

import (
	"sync"
	"time"
)

// refusedFor is how long programs are started without namespaces after a refusal that may pass.
const refusedFor = 10 * time.Second

// Trials remembers whether the system lets programs have namespaces of their own. The zero value has tried none. It is safe for
// concurrent use.
type Trials struct {
	// Told is called with each change; it may be nil.
	Told func(have bool, err error)

	mu      sync.Mutex
	had     bool
	refused bool
	lasting bool      // the refusal is one for good
	again   time.Time // when they are tried again
}

// Start starts a program by launch, in namespaces where it can have some, and reports whether it has. A launch that fails with and
// without is no refusal of them.
func (n *Trials) Start(launch func(namespaces bool) error) (apart bool, err error) {
	if n.isBackingOff() {
		return false, launch(false)
	}
	if err = launch(true); err == nil {
		n.recordNamespacesAvailable()
		return true, nil
	}
	refused, lasting := refusesNamespaces(err)
	if !refused {
		return false, err
	}
	if failed := launch(false); failed != nil {
		return false, failed
	}
	n.recordNamespacesRefused(err, lasting)
	return false, nil
}

// isBackingOff reports whether they are not worth to be tried now.
func (n *Trials) isBackingOff() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused && (n.lasting || time.Now().Before(n.again))
}

func (n *Trials) recordNamespacesAvailable() {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := n.refused
	n.had, n.refused = true, false
	if changed && n.Told != nil {
		n.Told(true, nil)
	}
}

// recordNamespacesRefused reports the failure unless it is permanent from the first program on: render.Isolation covers that
// case.
func (n *Trials) recordNamespacesRefused(err error, lasting bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := !n.refused && (n.had || !lasting)
	n.refused, n.lasting, n.again = true, lasting, time.Now().Add(refusedFor)
	if changed && n.Told != nil {
		n.Told(false, err)
	}
}
