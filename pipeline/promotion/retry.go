// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
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

// isDue reports whether it is time to try something.
func (p *Promoter) isDue(what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.now().Before(p.tries[what].after)
}

// isDueFor is isDue for what is also due when what is known of it has changed, unless the last try failed.
func (p *Promoter) isDueFor(what, signature string) bool {
	due := p.isDue(what)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]string{}
	}
	if !due && (p.seen[what] == signature || p.tries[what].failures > 0) {
		return false
	}
	p.seen[what] = signature
	return true
}

// recordAttempt notes how a try ended, so that the next one comes later the more have failed, and not before a host
// wants to be asked again.
func (p *Promoter) recordAttempt(what string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tries == nil {
		p.tries = map[string]retry{}
	}
	now := p.now()
	for old, t := range p.tries {
		if now.Sub(t.after) > time.Hour {
			delete(p.tries, old)
		}
	}
	t := p.tries[what]
	if err == nil {
		p.tries[what] = retry{after: now.Add(askEvery)}
		return
	}
	t.failures++
	after := backoff.Delay(retryFirst, retryLongest, t.failures)
	t.named = time.Time{}
	if wait, ok := pullrequest.Retry(err); ok && wait > 0 {
		after, t.named = max(after, wait), now.Add(wait)
	}
	t.after = now.Add(after)
	p.tries[what] = t
}

// forgetTries has everything be tried at once, but for what a host has named a time for: it is tried then.
func (p *Promoter) forgetTries() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for what, t := range p.tries {
		if !p.now().Before(t.named) {
			delete(p.tries, what)
			continue
		}
		t.after = t.named
		p.tries[what] = t
	}
}

// forgetTry has something be tried at once.
func (p *Promoter) forgetTry(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tries, what)
}
