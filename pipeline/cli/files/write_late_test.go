// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that somebody else makes at the place of a new one is theirs.
func TestAFileThatAppearsIsNotReplaced(t *testing.T) {
	t.Parallel()
	dir := tree(t, "a.yaml")
	outs := outputs(t, dir, "a.yaml")
	out, err := To(filepath.Join(dir, "new.yaml"), []byte("ours"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "new.yaml"), []byte("theirs"), 0o644))
	if err := Write(t.Context(), append(outs, out), nil); err == nil || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("error %v", err)
	}
	if got := read(t, filepath.Join(dir, "new.yaml")); got != "theirs" {
		t.Errorf("new.yaml has %q", got)
	}
	if got := read(t, filepath.Join(dir, "a.yaml")); got != "a.yaml\n" {
		t.Errorf("a.yaml has %q", got)
	}
}

// A file whose name is as long as the system takes can be written like others.
func TestALongNameIsWritten(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 250) + ".yaml"
	dir := tree(t, long)
	write(t, dir, long)
	onlyFiles(t, dir, long)
	wide := strings.Repeat("あ", 83) + "n.yaml"
	dir = tree(t, wide)
	write(t, dir, wide)
	onlyFiles(t, dir, wide)
}

// A link that leads nowhere yet stays a link: what it names is written.
func TestALinkThatLeadsNowhereIsKept(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	link := filepath.Join(dir, "link.yaml")
	must(t, os.Symlink("real/new.yaml", link))
	out, err := To(link, []byte("new"))
	if err == nil {
		err = Write(t.Context(), []Output{out}, nil)
	}
	if to, lost := os.Readlink(link); lost != nil || to != "real/new.yaml" {
		t.Errorf("the link is gone: %v (%v)", lost, err)
	}
}
