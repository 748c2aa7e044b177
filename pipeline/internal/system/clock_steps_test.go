// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStepsOfTheClockStopNothing has the times of all that the daemon keeps in files be ahead of its clock, or behind,
// as they are when that was set back or forward, or when a file server has another one; with and without a restart in
// between.
func TestStepsOfTheClockStopNothing(t *testing.T) {
	skipUnlessAsked(t)
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL", "  interval: 5s\n")})
	f.repository.Commit("first", map[string]string{"apps/web/app.yaml": deployment("web", "image:0")})
	f.start()
	const file = "web/shop/deployment-web.yaml"
	f.shows(file, "image:0\n")
	steps := []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour, time.Second, -time.Minute, 49 * time.Hour, -time.Second, 5 * time.Minute, -10 * 365 * 24 * time.Hour}
	for i := range 2 * len(steps) {
		at := time.Now().Add(steps[i%len(steps)])
		restart := i >= len(steps)
		if restart {
			f.stop()
		}
		err := filepath.WalkDir(f.c.State, func(path string, _ os.DirEntry, err error) error {
			if err != nil || strings.Contains(path, "/queue/") {
				return nil //nolint:nilerr // what comes and goes; and the queue's files have no times that anybody reads
			}
			_ = os.Chtimes(path, at, at)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if restart {
			f.start()
		}
		image := fmt.Sprintf("image:%d\n", i+1)
		f.push(f.repository.Commit(image, map[string]string{"apps/web/app.yaml": deployment("web", strings.TrimSpace(image))}))
		f.shows(file, image)
	}
}
