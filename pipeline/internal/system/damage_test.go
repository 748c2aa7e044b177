// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/server"
)

// damages are what a crash of the machine, or of its disk, can leave of a file.
var damages = []struct {
	name   string
	damage func(data []byte) []byte
}{
	{"empty", func([]byte) []byte { return nil }},
	{"half", func(data []byte) []byte { return data[:len(data)/2] }},
	{"zeros", func(data []byte) []byte { return make([]byte, len(data)) }},
	{"flipped", func(data []byte) []byte {
		out := bytes.Clone(data)
		for i := len(out) / 3; i < len(out); i += 7 {
			out[i] ^= 0x5a
		}
		return out
	}},
}

// filesBelow lists what is below a directory, relative to it.
func filesBelow(t *testing.T, dir string) (out []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			relative, err := filepath.Rel(dir, name)
			out = append(out, relative)
			return err
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// stopped kills the daemon and keeps it away while something is done to its files.
func (p *process) stopped(do func()) {
	p.hold(true)
	p.kill()
	p.gone()
	do()
	p.hold(false)
}

// next pushes a state of the only application and waits until it is published.
func (c *chaos) next() {
	c.t.Helper()
	c.newest[0]++
	n := c.newest[0]
	c.tell(c.repository.Commit(fmt.Sprint(n), map[string]string{"apps/app0/app.yaml": deployment("app0", fmt.Sprintf("image:%d", n))}))
	c.settle()
}

// settled has a daemon with one pipeline that has published two states, the second after an event, and a copy of its
// state directory as a kill has left it.
func settled(t *testing.T) (c *chaos, p *process, copied string) {
	t.Helper()
	c = newChaos(t, size{pipelines: 1})
	p = c.serve(c.c, false)
	c.settle()
	c.next()
	head := c.repository.Git("rev-parse", "main")
	c.eventually("waiting for the state to be saved", func() string {
		if p := c.app0(); len(p.Status.Published) != 1 || !strings.HasSuffix(p.Status.Published[0].SourceRevision, head) {
			return fmt.Sprintf("published is %+v", p.Status.Published)
		}
		return ""
	})
	time.Sleep(300 * time.Millisecond) // for the job to be done with
	copied = filepath.Join(t.TempDir(), "copy")
	p.stopped(func() {
		if err := os.Remove(c.c.Socket()); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(copied, os.DirFS(c.c.State)); err != nil {
			t.Fatal(err)
		}
	})
	return c, p, copied
}

// damaged puts the copy back with one file of it damaged, starts the daemon, and expects that it makes no commit for what
// is published already, and one for the next push. Errors that it logged are given.
func (c *chaos) damaged(p *process, copied, file string, damage func([]byte) []byte) (logged string) {
	c.t.Helper()
	c.restarted(p, func() {
		data, err := os.ReadFile(filepath.Join(copied, file))
		if err != nil {
			c.t.Fatal(err)
		}
		if err := os.RemoveAll(c.c.State); err != nil {
			c.t.Fatal(err)
		}
		if err := os.CopyFS(c.c.State, os.DirFS(copied)); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.c.State, file), damage(data), 0o600); err != nil {
			c.t.Fatal(err)
		}
	})
	before := c.repository.Git("rev-list", "--count", branchOf(0))
	c.suspend(server.Request{All: true, Held: true}) // where the state is lost
	c.next()
	c.verify()
	if after := c.repository.Git("rev-list", "--count", branchOf(0)); after != fmt.Sprint(atoi(c.t, before)+1) {
		c.t.Errorf("%s commits became %s", before, after)
	}
	return c.lastLogged(20)
}

func atoi(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sampled reports whether a case belongs to the run: a small one has every fourth file, and each kind of damage.
func sampled(n int) bool {
	every := 4 * len(damages)
	return full() || n%every == n/every%len(damages)
}

// TestDamagedStore damages each file of the embedded queue in turn.
func TestDamagedStore(t *testing.T) {
	c, p, copied := settled(t)
	cases := 0
	for _, file := range filesBelow(t, copied) {
		if !strings.HasPrefix(file, "queue/") || strings.HasSuffix(file, ".lock") {
			continue
		}
		for _, d := range damages {
			if cases++; !sampled(cases) {
				continue
			}
			t.Run(fmt.Sprintf("%s %s", file, d.name), func(t *testing.T) {
				c.t = t
				logged := c.damaged(p, copied, file, d.damage)
				// Where only the description of the stream is damaged, what it holds is found again.
				lost := strings.Contains(file, "_STATE/msgs/") && strings.HasSuffix(file, ".blk") && (d.name == "empty" || d.name == "zeros")
				if lost && !strings.Contains(logged, "prerig daemon status") {
					t.Errorf("it is not told that the state is lost: %s", logged)
				}
			})
		}
	}
	c.t = t
	if cases < 4*15 {
		t.Errorf("only %d cases, want more", cases)
	}
}

// TestDamagedMirror damages each file of the mirror in turn: objects on their own, and a pack with its index.
func TestDamagedMirror(t *testing.T) {
	c, p, copied := settled(t)
	mirror := filepath.Dir(filepath.Join(copied, find(t, copied, "shallow")))
	for _, packed := range []bool{false, true} {
		if packed {
			repack(t, mirror)
		}
		cases := 0
		for _, file := range filesBelow(t, copied) {
			if !strings.HasPrefix(file, "mirrors/") || strings.HasSuffix(file, ".lock") {
				continue
			}
			for _, d := range damages {
				if cases++; !sampled(cases) {
					continue
				}
				t.Run(fmt.Sprintf("packed %v, %s %s", packed, strings.Join(strings.Split(file, "/")[2:], "/"), d.name), func(t *testing.T) {
					c.t = t
					c.damaged(p, copied, file, d.damage)
				})
			}
		}
		c.t = t
		if cases < 4*4 {
			t.Errorf("only %d cases, want more", cases)
		}
	}
}

func find(t *testing.T, dir, name string) string {
	t.Helper()
	for _, file := range filesBelow(t, dir) {
		if filepath.Base(file) == name {
			return file
		}
	}
	t.Fatalf("there is no file %s", name)
	return ""
}

// repack puts all objects of a mirror into one pack.
func repack(t *testing.T, mirror string) {
	t.Helper()
	var names []string
	for _, file := range filesBelow(t, filepath.Join(mirror, "objects")) {
		if name := strings.ReplaceAll(file, "/", ""); len(name) == 40 {
			names = append(names, name)
		}
	}
	run := func(stdin string, args ...string) {
		command := exec.Command("git", args...)
		command.Dir, command.Stdin = mirror, strings.NewReader(stdin)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	run(strings.Join(names, "\n")+"\n", "pack-objects", "-q", "objects/pack/pack")
	run("", "prune-packed", "-q")
}
