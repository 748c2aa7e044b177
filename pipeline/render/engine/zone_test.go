// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os"
	"testing"
	"time"
)

// TestUTCWhileOthersLookAtFiles has a zone that somebody has loaded, and a goroutine that looks at files, as one of a linked package may:
// the race detector must have nothing to say of it.
func TestUTCWhileOthersLookAtFiles(t *testing.T) {
	_ = time.Local.String()
	was := *time.Local
	*time.Local = *time.FixedZone("Elsewhere", 3600)
	began, stop, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			if _, err := os.Stat("."); err != nil {
				t.Error(err)
			}
			if n == 0 {
				close(began)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	<-began
	useUTC()
	close(stop)
	<-stopped
	if got := time.Unix(0, 0).String(); got != "1970-01-01 00:00:00 +0000 UTC" {
		t.Errorf("the time is %s", got)
	}
	*time.Local = was
}
