// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/render"
)

// beforeDaemon is done first in the process of a daemon.
var beforeDaemon = func() error { return nil }

// child is a daemon, or a worker, in a process of its own that tests kill. Its configuration is the variable
// PRERIG_TEST_DAEMON.
func child() int {
	var c config.Config
	if err := json.Unmarshal([]byte(os.Getenv("PRERIG_TEST_DAEMON")), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := beforeDaemon(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if file := os.Getenv("PRERIG_TEST_ACCOUNT"); file != "" {
		giveAccount(file)
	}
	run := daemon.Serve
	if os.Getenv("PRERIG_TEST_WORKER") != "" {
		run = daemon.Work
		fmt.Println("working") // it has no address to tell
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := run(ctx, &c, daemon.Options{
		Render:  render.Options{Command: []string{os.Getenv("PRERIG_TEST_RENDERER")}},
		Version: "test", Log: slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Listening: func(hooks, page string) { fmt.Printf("%s %s\n", hooks, page) },
	})
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// giveAccount writes into a file, at each SIGUSR1, how many goroutines this process has and how many bytes are reachable.
func giveAccount(file string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			text := fmt.Appendf(nil, "%d %d\n", runtime.NumGoroutine(), m.HeapAlloc)
			if err := os.WriteFile(file+".new", text, 0o600); err != nil {
				panic(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				panic(err)
			}
		}
	}()
}
