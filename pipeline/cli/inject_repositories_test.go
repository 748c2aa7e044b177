// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRepositories injects into directories of other people's manifests, as they are, and takes the injection out again:
// injecting twice changes no file, a check finds nothing to do, and of the files that were changed at least 99 of 100 come
// back to the byte; the others are warned of. PRERIG_REPOSITORIES lists the directories, which are copied first. Files that
// cannot be read or injected are left out, and counted.
func TestRepositories(t *testing.T) {
	dirs := filepath.SplitList(os.Getenv("PRERIG_REPOSITORIES"))
	if len(dirs) == 0 {
		t.Skip("PRERIG_REPOSITORIES names no directories")
	}
	changed, back := 0, 0
	for _, dir := range dirs {
		r := &repository{name: filepath.Base(dir), dir: t.TempDir()}
		r.copyManifests(t, dir)
		r.roundTrip(t)
		t.Logf("%s: %d manifests, %d changed, %d back to the byte, %d left out; records at %d workloads", r.name, r.manifests, r.changed, r.back, len(r.left), r.records)
		changed, back = changed+r.changed, back+r.back
	}
	t.Logf("of %d files %d came back to the byte", changed, back)
	if back*100 < changed*99 {
		t.Errorf("less than 99 of 100 files came back to the byte")
	}
}

// repository is a copy of somebody's directory.
type repository struct {
	name, dir                         string
	manifests, changed, back, records int
	// left are the files that were left out.
	left []string
}

// copyManifests copies the files that a directory is searched for.
func (r *repository) copyManifests(t *testing.T, from string) {
	t.Helper()
	must(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if strings.Contains(path, "/.git/") || !slices.Contains([]string{".yaml", ".yml", ".json", ".tpl"}, filepath.Ext(path)) {
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(r.dir, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		r.manifests++
		return os.WriteFile(to, text, 0o644)
	}))
}

// roundTrip injects, injects again, checks and removes.
func (r *repository) roundTrip(t *testing.T) {
	t.Helper()
	original, ok := r.inject(t)
	if !ok {
		return
	}
	injected := tree(t, r.dir)
	for name, text := range injected {
		if text != original[name] {
			r.changed++
			r.records += strings.Count(text, "prerig.dev/undo")
		}
	}
	if code, _, err := command(t, "", "inject", "-i", r.dir); code != 0 {
		t.Errorf("%s: injecting again: exit code %d: %s", r.name, code, firstLines(err, "error"))
	}
	for name, text := range tree(t, r.dir) {
		if text != injected[name] {
			t.Errorf("%s: a second injection changes %s", r.name, name)
		}
	}
	if code, _, err := command(t, "", "inject", "--check", r.dir); code != 0 {
		t.Errorf("%s: checking: exit code %d: %s", r.name, code, firstLines(err, "error"))
	}
	code, _, said := command(t, "", "inject", "--remove", "-i", r.dir)
	if code != 0 {
		t.Errorf("%s: removing: exit code %d: %s", r.name, code, firstLines(said, "error"))
	}
	for name, text := range tree(t, r.dir) {
		switch {
		case injected[name] == original[name]:
		case text == original[name]:
			r.back++
		case !strings.Contains(firstLines(said, "warning"), name):
			t.Errorf("%s: %s did not come back, without a warning", r.name, name)
		}
	}
}

// inject injects and returns what the files were before. Files that stop the run are left out: broken manifests that a
// project tests itself with, and pods that another version injected. Nothing may be written then.
func (r *repository) inject(t *testing.T) (original map[string]string, ok bool) {
	t.Helper()
	for range 20 {
		original = tree(t, r.dir)
		code, _, err := command(t, "", "inject", "-i", r.dir)
		if code == 0 {
			return original, true
		}
		if !maps.Equal(original, tree(t, r.dir)) {
			t.Errorf("%s: exit code %d, and yet files were written: %s", r.name, code, firstLines(err, "error"))
		}
		if !r.leaveOut(firstLines(err, "error"), original) {
			t.Errorf("%s: injecting: exit code %d: %s", r.name, code, firstLines(err, "error"))
			return nil, false
		}
	}
	t.Errorf("%s: files go on stopping the run", r.name)
	return nil, false
}

// leaveOut removes the files that errors name, and reports whether there was one.
func (r *repository) leaveOut(errors string, all map[string]string) (found bool) {
	for line := range strings.Lines(errors) {
		for name := range all {
			if strings.Contains(line, name+":") && os.Remove(filepath.Join(r.dir, name)) == nil {
				found = true
				r.left = append(r.left, name)
			}
		}
	}
	return found
}

// firstLines returns the lines of a severity, a thousand at most.
func firstLines(text, severity string) string {
	var out strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, severity) && n < 1000 {
			fmt.Fprint(&out, line)
			n++
		}
	}
	return out.String()
}
