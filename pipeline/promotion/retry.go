// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/backoff"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

const (
	// askEvery is how often a host is polled for changes that no event reports.
	askEvery = 15 * time.Second
	// retryFirst and retryLongest bound how long it is waited after something that failed, where no host names a time.
	retryFirst, retryLongest = 5 * time.Second, 15 * time.Minute
)

// retry is when something that failed is tried again.
type retry struct {
	failures int
	after    time.Time
	named    time.Time // the host does not want to be asked before; zero if it did not specify a time
}

// retries decides when something is tried, and again after it failed. The zero value has tried nothing. It is safe for
// concurrent use.
type retries struct {
	mu    sync.Mutex
	tries map[string]retry
	seen  map[string]string // signatures of units when they were looked at last
}

// isDue reports whether it is time to try something.
func (r *retries) isDue(what string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !now.Before(r.tries[what].after)
}

// isDueFor is isDue for what is also due when what is known of it has changed, unless the last try failed.
func (r *retries) isDueFor(what, signature string, now time.Time) bool {
	due := r.isDue(what, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]string{}
	}
	if !due && (r.seen[what] == signature || r.tries[what].failures > 0) {
		return false
	}
	r.seen[what] = signature
	return true
}

// record notes how a try ended, so that the next one comes later the more have failed, and not before a host
// wants to be asked again.
func (r *retries) record(what string, now time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries == nil {
		r.tries = map[string]retry{}
	}
	for old, t := range r.tries {
		if now.Sub(t.after) > time.Hour {
			delete(r.tries, old)
		}
	}
	t := r.tries[what]
	if err == nil {
		r.tries[what] = retry{after: now.Add(askEvery)}
		return
	}
	t.failures++
	after := backoff.Delay(retryFirst, retryLongest, t.failures)
	t.named = time.Time{}
	if wait, ok := pullrequest.Retry(err); ok && wait > 0 {
		after, t.named = max(after, wait), now.Add(wait)
	}
	t.after = now.Add(after)
	r.tries[what] = t
}

// forgetAll has everything be tried at once, but for what a host has named a time for: it is tried then.
func (r *retries) forgetAll(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, t := range r.tries {
		if !now.Before(t.named) {
			delete(r.tries, what)
			continue
		}
		t.after = t.named
		r.tries[what] = t
	}
}

// forget has something be tried at once.
func (r *retries) forget(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tries, what)
}
