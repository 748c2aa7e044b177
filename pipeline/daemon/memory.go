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

// shareOfMemory is the share of a container's memory for this process, in percent. The rest is for its renderers.
const shareOfMemory = 60

// limitMemory makes the garbage collector keep this process within the memory of its control group, unless the
// environment sets a limit (GOMEMLIMIT). The budgets for data from remote servers derive from it.
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

// memoryOfGroup returns the lowest memory limit of the control groups of this process, in bytes; math.MaxInt64 if
// none is set. root is the root of the file system.
func memoryOfGroup(root string) int64 {
	least := int64(math.MaxInt64)
	take := func(name string) {
		text, err := os.ReadFile(path.Join(root, name))
		if err != nil {
			return
		}
		// Without a limit, the older interface returns a number close to the largest; the newer one returns max.
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
		// The limits of its parents apply, too. In a container the path may be one of the host, which does not
		// exist here.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			take(path.Join(base, group, file))
			if group == "/" {
				break
			}
		}
	}
	return least
}
