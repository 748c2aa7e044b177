// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish"
)

// TestARunDoesNotWaitForEverForItsDifference has the differences of other runs never end.
func TestARunDoesNotWaitForEverForItsDifference(t *testing.T) {
	for _, tc := range []struct {
		cause error // of the end of the run, nil where it does not end
		want  string
	}{{nil, errNoTurn.Error()}, {errors.New("the process ends"), "the process ends"}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.cause != nil {
				cancel(tc.cause)
			}
			var log bytes.Buffer
			d := &differences{turns: make(chan struct{}, 1)}
			subject := diffSubject{log: slog.New(slog.NewTextHandler(&log, nil))}
			d.turns <- struct{}{}
			if d.saveInTime(ctx, subject, targetResults{{receipt: publish.Receipt{Changed: true}}}) {
				t.Error("a difference was stored")
			}
			if !strings.Contains(log.String(), tc.want) {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}

// TestADifferenceThatIsLeftBehindKeepsItsTurn has one hang in what no context stops, and its pipeline run again meanwhile.
func TestADifferenceThatIsLeftBehindKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &differences{turns: make(chan struct{}, 2), watchdog: &watchdog.Watchdog{}}
		goOn := make(chan struct{})
		results := targetResults{{receipt: publish.Receipt{Changed: true, Outcome: publish.Outcome{Modified: []string{"f"}}, Old: func(string) []byte {
			<-goOn
			panic("nothing is compared")
		}}}}
		for range 2 {
			if d.saveInTime(t.Context(), diffSubject{log: slog.New(slog.DiscardHandler)}, results) {
				t.Error("a difference was stored")
			}
			if working := len(d.turns); working != 1 {
				t.Errorf("%d have a turn while one works", working)
			}
		}
		close(goOn)
		synctest.Wait()
		if working := len(d.turns); working != 0 {
			t.Errorf("%d have a turn after all", working)
		}
	})
}
