// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/charttest"
)

// A link in the place of the lock, or on the way to it, leads prerig lock to no file outside of the source, and a pipe or
// a device keeps it waiting for nothing.
func TestALockLeadsOutOfNoSource(t *testing.T) {
	repository := charttest.New(t)
	repository.Add("web", "1.0.0", webChart(t, "1.0.0"))
	for name, one := range map[string]struct {
		lock string // of the pipeline
		link string // what the link in the place of its first element leads to
		make func(path string) error
	}{
		"link":      {lock: "charts.lock.yaml", link: "../outside/charts.lock.yaml"},
		"absolute":  {lock: "charts.lock.yaml", link: "ABSOLUTE/charts.lock.yaml"},
		"new":       {lock: "charts.lock.yaml", link: "../outside/new.yaml"},
		"directory": {lock: "locks/charts.lock.yaml", link: "../outside"},
		"nothing":   {lock: "locks/new.yaml", link: "../outside"},
		"device":    {lock: "charts.lock.yaml", link: "/dev/zero"},
		"pipe":      {lock: "charts.lock.yaml", make: func(path string) error { return syscall.Mkfifo(path, 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChartCommands(t, "    helm: {repository: \""+repository.URL+"\", chart: web, version: ^1.0.0, namespace: shop, kubeVersion: 1.33.4}\n    chartLock: "+one.lock)
			const text = "apiVersion: prerig.dev/v1alpha1\nkind: ChartLock\nmetadata: {name: charts}\nspec: {}\n"
			c.write("outside/charts.lock.yaml", text)
			outside := filepath.Join(filepath.Dir(filepath.Dir(c.lockFile)), "outside")
			first, _, _ := strings.Cut(one.lock, "/")
			at := filepath.Join(filepath.Dir(c.lockFile), first)
			err := os.Symlink(strings.Replace(one.link, "ABSOLUTE", outside, 1), at)
			if one.make != nil {
				err = one.make(at)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.run(2, "lock")
			c.run(2, "charts", "lock")
			names, err := os.ReadDir(outside)
			if err != nil {
				t.Fatal(err)
			}
			now, err := os.ReadFile(filepath.Join(outside, "charts.lock.yaml"))
			if err != nil || string(now) != text || len(names) != 1 {
				t.Errorf("outside of the source there are %v, and the lock is\n%s", names, now)
			}
		})
	}
}
