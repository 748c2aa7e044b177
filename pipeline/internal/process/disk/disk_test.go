// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/process/disk"
)

func TestProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		space disk.Space
		want  string
	}{
		"room":                {disk.Space{Available: disk.MinAvailable, Capacity: 1 << 30, Inodes: 1, Counted: true}, ""},
		"inodes not counted":  {disk.Space{Available: 1 << 30, Capacity: 1 << 30}, ""},
		"full":                {disk.Space{Available: disk.MinAvailable - 1, Capacity: 1 << 30, Inodes: 1, Counted: true}, "is full: 4194303 bytes are left"},
		"no inodes":           {disk.Space{Available: 1 << 30, Capacity: 1 << 30, Counted: true}, "no inodes left"},
		"read-only with room": {disk.Space{Available: 1 << 30, Capacity: 1 << 30, ReadOnly: true}, "read-only"},
	} {
		err := tc.space.Problem()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestSpaceOfADirectory(t *testing.T) {
	dir := t.TempDir()
	space, err := disk.Of(dir)
	if err != nil || space.Capacity == 0 || space.Available > space.Capacity {
		t.Errorf("%+v, %v", space, err)
	}
	if _, err := disk.Of(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there has room")
	}
}
