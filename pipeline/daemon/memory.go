// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// shareOfMemory is how much of a container's memory this process takes, in percent. The rest is for its renderers.
const shareOfMemory = 60

// limitMemory has the garbage collector keep this process within the memory of its control group, unless the
// environment says how much it may take (GOMEMLIMIT). Budgets for what foreign servers send follow from it.
func limitMemory(root string, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := memoryOfGroup(root)
	if limit == math.MaxInt64 {
		return
	}
	own := limit / 100 * shareOfMemory
	debug.SetMemoryLimit(own)
	log.Info("this process keeps to its share of the memory of its control group", "limit", limit, "share", own)
}

// memoryOfGroup returns the least of the limits of the control groups that this process is in, in bytes; math.MaxInt64
// where there is none. root is the root of the file system.
func memoryOfGroup(root string) int64 {
	least := int64(math.MaxInt64)
	take := func(name string) {
		text, err := os.ReadFile(path.Join(root, name))
		if err != nil {
			return
		}
		// The older interface tells a number that is near the largest where there is none; the newer one says max.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && n < 1<<60 {
			least = min(least, n)
		}
	}
	groups, _ := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		if fields[1] != "" && fields[1] != "memory" {
			continue
		}
		// Those above it bind it, too. In a container the path may be one of the machine, which is not there.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			take(path.Join(base, group, file))
			if group == "/" {
				break
			}
		}
	}
	return least
}
