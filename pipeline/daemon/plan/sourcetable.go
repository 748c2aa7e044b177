// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
)

// sourceTable remembers the sources of pipelines as long as a pipeline or a plan uses them: each commit that a pipeline is
// pinned to is a source of its own. The zero value is empty. It is safe for concurrent use.
type sourceTable struct {
	unresponsive unresponsiveSources

	mu    sync.Mutex
	texts map[string]sourceText // of pipelines
	known map[string]*knownSource
}

// sourceText is a text that is equal for the pipelines of one source, and the entry that it was made of.
type sourceText struct{ digest, file, text string }

// knownSource is what is remembered of one source.
type knownSource struct {
	uses     int        // how many pipelines have it, and how many plans are at it
	turn     sync.Mutex // held by the plan that is at it
	settled  *settledSource
	polled   time.Time // when a look at it ended last
	expected time.Time // since when it is expected to be polled
	rest     rest
}

// of returns what is remembered of a source. The caller holds the lock.
func (t *sourceTable) of(key string) *knownSource {
	if t.known[key] == nil {
		if t.known == nil {
			t.known = map[string]*knownSource{}
		}
		t.known[key] = &knownSource{}
	}
	return t.known[key]
}

// keyOf is equal for the pipelines of one scope with the same sources. All are asked for it with each event and each
// tick of the timer.
func (t *sourceTable) keyOf(e catalog.Entry, pipelinesDir string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, ok := t.texts[e.Key]
	if ok && before.digest == e.Digest && before.file == e.File {
		return before.text
	}
	sources := e.Sources(pipelinesDir)
	parts := []any{e.Scope(), sources[0].Source}
	for _, one := range sources[1:] {
		parts = append(parts, one.MountPath, one.Source)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // it is plain data
	}
	if t.texts == nil {
		t.texts = map[string]sourceText{}
	}
	t.of(string(text)).uses++
	t.endUse(before.text)
	t.texts[e.Key] = sourceText{digest: e.Digest, file: e.File, text: string(text)}
	return string(text)
}

// forgetPipeline drops the memory of a removed pipeline.
func (t *sourceTable) forgetPipeline(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endUse(t.texts[key].text)
	delete(t.texts, key)
}

// acquire returns the lock of a source, until release is called: two plans never have different ones.
func (t *sourceTable) acquire(key string) *sync.Mutex {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(key)
	s.uses++
	return &s.turn
}

// release is called by a plan that is done with a source.
func (t *sourceTable) release(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endUse(key)
}

// endUse forgets a source when the last of those who use it leaves. The caller holds the lock.
func (t *sourceTable) endUse(key string) {
	if s := t.known[key]; s != nil && s.uses > 1 {
		s.uses--
		return
	}
	delete(t.known, key)
	t.unresponsive.forgetSource(key)
}
