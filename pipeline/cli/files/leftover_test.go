// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stagingEnv has this test's binary stage files in a directory and wait, to be killed.
const stagingEnv = "PRERIG_TEST_STAGE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(stagingEnv); dir != "" {
		stageAndWait(dir)
	}
	os.Exit(m.Run())
}

// stageAndWait writes the temporary files for all files of a directory, says so, and waits.
func stageAndWait(dir string) {
	for _, name := range []string{"a.yaml", "sub/b.yaml"} {
		out, err := To(filepath.Join(dir, name), []byte("new"))
		if err == nil {
			_, err = stageFile(out, out.Data)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("staged")
	bufio.NewReader(os.Stdin).ReadByte()
}

// TestLeftoversOfAKilledRunAreRemoved kills a run with SIGKILL between its writing and its renaming.
func TestLeftoversOfAKilledRunAreRemoved(t *testing.T) {
	t.Parallel()
	dir := tree(t, "a.yaml", "sub/b.yaml")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), stagingEnv+"="+dir)
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "staged\n" {
		t.Fatalf("the run says %q, %v", line, err)
	}
	_, listing := readAll(t, nil, dir)
	if len(listing.Leftovers) != 2 {
		t.Fatalf("found %q while the run is at work", listing.Leftovers)
	}
	removed, kept, err := Clean(listing.Leftovers)
	if len(removed) > 0 || len(kept) != 2 || err != nil {
		t.Errorf("while the run is at work: removed %q, kept %q, %v", removed, kept, err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	_, listing = readAll(t, nil, filepath.Join(dir, "a.yaml"))
	removed, kept, err = Clean(listing.Leftovers)
	if len(removed) != 1 || len(kept) > 0 || err != nil {
		t.Errorf("beside a file: removed %q, kept %q, %v", removed, kept, err)
	}
	_, listing = readAll(t, nil, dir)
	removed, kept, err = Clean(listing.Leftovers)
	if len(removed) != 1 || len(kept) > 0 || err != nil {
		t.Errorf("below a directory: removed %q, kept %q, %v", removed, kept, err)
	}
	onlyFiles(t, dir, "a.yaml", "sub")
	onlyFiles(t, filepath.Join(dir, "sub"), "b.yaml")
}

// What only looks alike, and what comes from somewhere else, stays.
func TestOtherHiddenFilesStay(t *testing.T) {
	t.Parallel()
	gone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	must(t, gone.Run())
	pid := gone.Process.Pid
	elsewhere := fmt.Sprintf(".a.yaml.prerig-%08x-%d-0", 0, pid)
	earlier := fmt.Sprintf(".a.yaml.prerig-%d-0", pid)
	dir := tree(t, "a.yaml", ".a.yaml.prerig-notes", ".prerig-1-2", ".a.yaml.swp", elsewhere, earlier)
	must(t, os.Symlink("a.yaml", filepath.Join(dir, fmt.Sprintf(".b.yaml.prerig-%s-%d-0", here(), pid))))
	_, listing := readAll(t, nil, dir)
	removed, kept, err := Clean(listing.Leftovers)
	if len(removed) > 0 || err != nil {
		t.Errorf("removed %q, %v", removed, err)
	}
	var names []string
	for _, path := range kept {
		names = append(names, filepath.Base(path))
	}
	if d := cmp.Diff([]string{elsewhere, earlier, fmt.Sprintf(".b.yaml.prerig-%s-%d-0", here(), pid)}, names); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
}
