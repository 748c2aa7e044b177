// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/queue"
)

// TestARenderThatWasTooSlowIsTriedAgain has the status say that it is, and no more often than it says.
func TestARenderThatWasTooSlowIsTriedAgain(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "slow"})
	for try := 1; try <= 4; try++ {
		err := w.do("shop", "x", 1)
		if again := errors.As(err, new(*queue.RetryError)); again != (try < 4) {
			t.Errorf("try %d: error %v", try, err)
		}
		if got := w.renderer.renders.Load(); got != int64(try) || w.state("shop").Stalled() != (try == 4) {
			t.Errorf("try %d: %d renders, stalled %v", try, got, w.state("shop").Stalled())
		}
	}
}

// TestTriesOfALaterEventWaitLongerEachTime has the same failure for two events.
func TestTriesOfALaterEventWaitLongerEachTime(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	w.git.Intercept = func(rw http.ResponseWriter, r *http.Request) bool {
		push := strings.Contains(r.URL.String(), "receive-pack")
		if push {
			http.Error(rw, "gone", http.StatusForbidden)
		}
		return push
	}
	for _, cause := range []string{"one", "two", "three"} {
		var last time.Duration
		for try := range 4 {
			var retry *queue.RetryError
			if err := w.do("shop", cause, 1); !errors.As(err, &retry) || retry.After <= last {
				t.Fatalf("event %s, try %d: %v, again after %s, before after %s", cause, try, err, fmt.Sprint(retry), last)
			}
			last = retry.After
		}
	}
}
