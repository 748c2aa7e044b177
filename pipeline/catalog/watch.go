// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long the directory must be quiet before it is read: editors and mounts change several files at once.
const settle = 100 * time.Millisecond

// rescan is how often it is read without any sign, as not every file system tells of changes.
const rescan = 30 * time.Second

// Watch reloads whenever something in the directory, or in one of the further ones, changes, until ctx is done. After each
// change of a further directory it calls touched with it. Of a repository of pipelines it watches nothing; see Follow.
func (c *Catalog) Watch(ctx context.Context, touched func(dir string), further ...string) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	add := func() {
		dirs := further
		if c.repo == nil {
			dirs = append([]string{c.dir}, further...)
		}
		for _, dir := range dirs {
			_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					_ = w.Add(path)
				}
				return nil
			})
		}
	}
	add()
	timer := time.NewTimer(rescan)
	defer timer.Stop()
	pending := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.Events:
			for _, dir := range further {
				if strings.HasPrefix(e.Name, filepath.Clean(dir)) {
					pending[dir] = true
				}
			}
			timer.Reset(settle)
		case err := <-w.Errors:
			c.log.Warn("watching for changes of pipelines", "error", err)
		case <-timer.C:
			add()
			if _, err := c.Reload(); err != nil {
				c.log.Error("the pipelines cannot be read; those that are known stay", "error", err)
			}
			for dir := range pending {
				touched(dir)
			}
			clear(pending)
			timer.Reset(rescan)
		}
	}
}
