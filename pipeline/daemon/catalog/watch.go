// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long the directory must be quiet before it is read: editors and mounts change several files at once.
// Something that is never quiet puts that off for no longer than unsettled.
const (
	settle    = 100 * time.Millisecond
	unsettled = 2 * time.Second
)

// rescan is the interval of reads without a notification, because not every file system reports changes.
const rescan = 30 * time.Second

// Watch reloads whenever a file in the directory, or in one of the further ones, changes, until ctx is done. After
// each change of a further directory it calls touched with it. It does not watch repositories of pipelines; see
// Poll.
func (c *Catalog) Watch(ctx context.Context, touched func(dir string), further ...string) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	seen, signs := map[string]dirState{}, map[string]bool{}
	for _, dir := range further {
		seen[dir] = watchTree(w, dir)
	}
	c.origins.watchDirectories(w)
	timer := time.NewTimer(c.rescan)
	defer timer.Stop()
	var since time.Time // of the first sign that was not followed yet
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.Events:
			for _, dir := range further {
				if root := seen[dir].root; root != "" && strings.HasPrefix(e.Name, root) {
					signs[dir] = true
				}
			}
			if since.IsZero() {
				since = time.Now()
			}
			timer.Reset(min(settle, max(0, unsettled-time.Since(since))))
		case err := <-w.Errors:
			c.log.Warn("watching for changes of pipelines", "error", err)
		case <-timer.C:
			since = time.Time{}
			c.origins.watchDirectories(w)
			if _, err := c.Reload(); err != nil {
				c.log.Error("the pipelines cannot be read; the known ones stay", "error", err)
			}
			for _, dir := range further {
				now := watchTree(w, dir)
				if now != seen[dir] || signs[dir] {
					touched(dir)
				}
				seen[dir] = now
			}
			clear(signs)
			timer.Reset(c.rescan)
		}
	}
}

// watchDirectories has the directories watched that pipelines are read from.
func (all origins) watchDirectories(w *fsnotify.Watcher) {
	for _, o := range all {
		if o.dir != "" {
			watchTree(w, o.dir)
		}
	}
}

// dirState is a directory with its links resolved, "" if it does not exist, and a number that changes with the
// files in it: not every change is notified, and a change may precede the watch.
type dirState struct {
	root  string
	files uint64
}

// watchTree watches every directory below dir and returns its state.
func watchTree(w *fsnotify.Watcher, dir string) dirState {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil || dir == "" {
		return dirState{} // a directory of policies is optional and need not exist
	}
	files := fnv.New64a()
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() {
			_ = w.Add(path)
		}
		if info, err := d.Info(); err == nil {
			fmt.Fprintf(files, "%q %d %d %s\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return nil
	})
	return dirState{root, files.Sum64()}
}
