// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// TestAHostIsNotAskedBeforeTheTimeThatItNames has a person promote meanwhile.
func TestAHostIsNotAskedBeforeTheTimeThatItNames(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := &Promoter{Now: func() time.Time { return now }}
	p.retries.record("limited", p.now(), &pullrequest.Error{Status: http.StatusTooManyRequests, Temporary: true, Wait: time.Hour})
	for range 20 {
		p.retries.record("refused", p.now(), errors.New("no"))
	}
	is := func(when string, limited, refused bool) {
		t.Helper()
		if p.retries.isDue("limited", p.now()) != limited || p.retries.isDue("refused", p.now()) != refused {
			t.Errorf("%s: what is limited is due: %v, what was refused: %v", when, p.retries.isDue("limited", p.now()), p.retries.isDue("refused", p.now()))
		}
	}
	is("at once", false, false)
	p.retries.forgetAll(p.now())
	is("promoted", false, true)
	now = now.Add(time.Hour - time.Second)
	is("before the time", false, true)
	now = now.Add(time.Second)
	is("then", true, true)
	p.retries.record("limited", p.now(), errors.New("no"))
	p.retries.forgetAll(p.now())
	is("with another error", true, true)
}
