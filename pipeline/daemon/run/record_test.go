// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// TestTriesOfALaterEventWaitLongerEachTime has the same failure for two events.
func TestTriesOfALaterEventWaitLongerEachTime(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	w.git.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		push := strings.Contains(r.URL.String(), "receive-pack")
		if push {
			http.Error(rw, "gone", http.StatusForbidden)
		}
		return push
	})
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

// TestATryWaitsNoLongerThanTheInterval fails so often that the wait has become as long as it gets.
func TestATryWaitsNoLongerThanTheInterval(t *testing.T) {
	for interval, longest := range map[string]time.Duration{
		"5s": 30 * time.Second, "2m": 2 * time.Minute, "10m": 6 * time.Minute, "0s": 6 * time.Minute,
	} {
		t.Run(interval, func(t *testing.T) {
			w := &works{t: t, renderer: &renderer{}}
			host := httptest.NewServer(http.NotFoundHandler())
			defer host.Close()
			w.run(map[string]string{"shop": fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop}\nspec:\n"+
				"  interval: %s\n  source: {git: {url: \"%s/apps\", ref: {branch: main}}}\n  publish: [{git: {branch: rendered}}]\n", interval, host.URL)})
			var waits []time.Duration
			for range 12 {
				var retry *queue.RetryError
				if err := w.do("shop", "x", 1); !errors.As(err, &retry) {
					t.Fatal(err)
				}
				waits = append(waits, retry.After)
			}
			if last := waits[len(waits)-1]; last > longest || last < longest*5/6 || waits[0] > 2*time.Second {
				t.Errorf("the tries are %v apart, the last should be %s", waits, longest)
			}
		})
	}
}

// TestAMessageThatCannotBeUsedIsTold has a template that cuts more than the subject has.
func TestAMessageThatCannotBeUsedIsTold(t *testing.T) {
	w := newWorks(t, "shop")
	entry, _ := w.runner.Catalog.Get("shop")
	entry.Pipeline.Spec.Publish[0].Git.Message = "{{slice .Source.Subject 0 20}}"
	w.repository.Commit("fix typo", map[string]string{"shop/text": "one"})
	if err := w.do("shop", "1", 1); err != nil {
		t.Fatal(err)
	}
	if got := w.repository.Git("log", "-1", "--format=%s", "rendered"); got != "Render shop: fix typo" {
		t.Errorf("the subject is %q", got)
	}
	if run := w.state("shop").Runs[0]; len(run.Findings) != 1 || !strings.HasPrefix(run.Findings[0], "warning: git.message cannot be used") {
		t.Errorf("the run says %q", run.Findings)
	}
}
