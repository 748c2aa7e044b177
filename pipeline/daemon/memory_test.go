// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryOfGroup(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":           {nil, math.MaxInt64},
		"a container":    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1610612736\n"}, 1610612736},
		"no limit":       {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, math.MaxInt64},
		"of the machine": {map[string]string{"proc/self/cgroup": "0::/kubepods/pod1/abc\n", "sys/fs/cgroup/memory.max": "1000\n"}, 1000},
		"one above": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2000\n",
		}, 2000},
		"the older interface": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/1\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "3000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range test.files {
				at := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := memoryOfGroup(root); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
