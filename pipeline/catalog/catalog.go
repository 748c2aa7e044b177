// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Entry is one pipeline, or one file or document that is not a valid one.
type Entry struct {
	// Key is the pipeline's namespace and name; for what cannot be read so far, the file.
	Key string
	// File that it is in.
	File string
	// Pipeline is nil where Err is set.
	Pipeline *v1alpha1.RenderPipeline
	// Digest of the pipeline's specification.
	Digest string
	// Err says what is wrong with it.
	Err error
}

// Catalog is the pipelines of a directory. It is safe for concurrent use.
type Catalog struct {
	dir string
	log *slog.Logger

	mu      sync.RWMutex
	entries map[string]Entry
	keys    []string
	index   *index

	listeners []func(changed []string)
}

// Open reads the directory. One that does not exist is an error; files that are wrong are not.
func Open(dir string, log *slog.Logger) (*Catalog, error) {
	c := &Catalog{dir: dir, log: log, entries: map[string]Entry{}, index: newIndex(nil)}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if _, err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// OnChange calls f with the keys that are new, different or gone after each reload that changed anything. It is to be
// called before Watch.
func (c *Catalog) OnChange(f func(changed []string)) { c.listeners = append(c.listeners, f) }

// Get gives one entry.
func (c *Catalog) Get(key string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[key]
	return e, ok
}

// All gives every entry, sorted by key.
func (c *Catalog) All() []Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]Entry, 0, len(c.keys))
	for _, key := range c.keys {
		out = append(out, c.entries[key])
	}
	return out
}

// Reload reads the directory again and gives the keys that changed.
func (c *Catalog) Reload() ([]string, error) {
	read, err := readDir(c.dir)
	if err != nil {
		return nil, err
	}
	entries := map[string]Entry{}
	for _, e := range read {
		if other, ok := entries[e.Key]; ok {
			e.Err = fmt.Errorf("reading %s: the pipeline %s is in %s already", e.File, e.Key, other.File)
			e.Pipeline, e.Key = nil, e.File+"#"+e.Key
		}
		entries[e.Key] = e
	}
	keys := make([]string, 0, len(entries))
	for key := range entries {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	next := newIndex(entries)
	c.mu.Lock()
	changed := differences(c.entries, entries)
	c.entries, c.keys, c.index = entries, keys, next
	c.mu.Unlock()
	for _, key := range changed {
		if e, ok := entries[key]; ok && e.Err != nil {
			c.log.Error("a pipeline is not valid and does not run", "pipeline", key, "file", e.File, "error", e.Err)
		}
	}
	if len(changed) > 0 {
		for _, f := range c.listeners {
			f(changed)
		}
	}
	return changed, nil
}

func differences(before, after map[string]Entry) []string {
	var out []string
	for key, e := range after {
		old, ok := before[key]
		if !ok || old.Digest != e.Digest || text(old.Err) != text(e.Err) {
			out = append(out, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			out = append(out, key)
		}
	}
	sort.Strings(out)
	return out
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// maxFile bounds one file of pipelines.
const maxFile = 8 << 20

// readDir reads every file, in the order of their names. Hidden files and directories are left out, as mounted ConfigMaps
// keep their versions in them.
func readDir(dir string) ([]Entry, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("reading pipelines: %s is not a directory", dir)
	}
	var out []Entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			out = append(out, Entry{Key: relative(dir, path), File: relative(dir, path), Err: err})
			return nil
		}
		if path != dir && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		out = append(out, readFile(path, relative(dir, path))...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading pipelines: %w", err)
	}
	return out, nil
}

func relative(dir, path string) string {
	if name, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(name)
	}
	return path
}

func readFile(path, name string) []Entry {
	broken := func(err error) []Entry { return []Entry{{Key: name, File: name, Digest: text(err), Err: err}} }
	info, err := os.Stat(path)
	if err != nil {
		return broken(fmt.Errorf("reading %s: %w", name, err))
	}
	if info.IsDir() {
		return nil
	}
	if info.Size() > maxFile {
		return broken(fmt.Errorf("reading %s: the file has %d bytes, more than %d", name, info.Size(), maxFile))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return broken(fmt.Errorf("reading %s: %w", name, err))
	}
	return Parse(name, data)
}

// Parse reads the pipelines of one file. Documents are read one by one, so that a wrong one stops no other.
func Parse(name string, data []byte) []Entry {
	file, err := manifest.Parse(name, data)
	if err != nil {
		err = fmt.Errorf("reading %s: %w", name, err)
		return []Entry{{Key: name, File: name, Digest: digest(data), Err: err}}
	}
	var out []Entry
	lines := 0
	for _, doc := range file.Docs {
		// Empty lines in front make the lines of messages those of the file.
		text := append(bytes.Repeat([]byte("\n"), lines), doc.Raw()...)
		lines = bytes.Count(text, []byte("\n"))
		all, err := v1alpha1.ParseAll(text)
		if err != nil {
			out = append(out, invalid(name, doc, len(file.Docs), err))
			continue
		}
		for _, p := range all {
			spec, err := json.Marshal([]any{p.Spec, p.Metadata})
			if err != nil {
				out = append(out, invalid(name, doc, len(file.Docs), err))
				continue
			}
			out = append(out, Entry{Key: p.Key(), File: name, Pipeline: p, Digest: digest(spec)})
		}
	}
	return out
}

// invalid is a document that cannot be used. It keeps the name of the pipeline where that can be seen.
func invalid(name string, doc *manifest.Document, of int, err error) Entry {
	key := name
	if of > 1 {
		key = fmt.Sprintf("%s#%d", name, doc.Index())
	}
	if meta, ok := doc.Peek(); ok && meta.Kind == v1alpha1.Kind && meta.Name != "" {
		key = (&v1alpha1.RenderPipeline{Metadata: v1alpha1.Metadata{Name: meta.Name, Namespace: meta.Namespace}}).Key()
	}
	return Entry{Key: key, File: name, Digest: digest(doc.Raw()), Err: fmt.Errorf("reading %s: %w", name, joined(err))}
}

// joined puts several errors in one line.
func joined(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
