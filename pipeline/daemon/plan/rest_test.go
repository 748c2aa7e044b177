// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/source"
)

// TestASourceThatKeepsFailingIsPolledLessOften: each poll of a hostile source may cost much, and its author chooses
// the interval. Other sources keep theirs, and so does this one once it answers.
func TestASourceThatKeepsFailingIsPolledLessOften(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"good", "bad"} {
		text := "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: " + name + "}\nspec:\n  source: {dir: {path: " + dir + "/" + name + "}}\n" +
			"  interval: 1s\n  build: {path: apps}\n  publish: [{git: {url: https://h/out, branch: rendered, path: " + name + "}}]\n"
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Planner{Catalog: c, PipelinesDir: dir, Fetcher: source.New(source.Options{StateDir: t.TempDir(), AllowDir: true})}
	bad, _ := c.Get("bad")
	key := p.sources.keyOf(bad, p.PipelinesDir)
	poll := func() error {
		_, err := p.fetchSafely(t.Context(), key, bad)
		return err
	}
	due := func() []string {
		now := time.Now()
		defer p.endInterval("", now)
		return p.beginInterval([]string{"bad", "good"}, now)
	}
	for range 10 {
		if err := poll(); err == nil {
			t.Fatal("the source is not there, and was fetched")
		}
	}
	if got := due(); !slices.Equal(got, []string{"good"}) {
		t.Errorf("after ten failures, %v are due", got)
	}
	if left := time.Until(p.sources.of(key).rest.until); left > 30*time.Second {
		t.Errorf("it rests for %s", left)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failures := p.sources.of(key).rest.failures
	if _, err := p.fetchSafely(ended, key, bad); err == nil || p.sources.of(key).rest.failures != failures {
		t.Errorf("the end of the process counts as a failure of the source: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bad", "apps"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := poll(); err != nil {
		t.Fatal(err)
	}
	if got := due(); !slices.Equal(got, []string{"bad", "good"}) {
		t.Errorf("after it has answered, %v are due", got)
	}
}

// TestASourceThatFailsSlowlyIsPolledRarely: what unpacks much before it fails would otherwise keep a processor busy. It is not reported as
// one that is no longer polled.
func TestASourceThatFailsSlowlyIsPolledRarely(t *testing.T) {
	var sources sourceTable
	for range 12 {
		sources.notePollResult("slow", true, 10*time.Second)
		sources.notePollResult("quick", true, 10*time.Millisecond)
	}
	for source, want := range map[string][2]time.Duration{"slow": {290 * time.Second, 5 * time.Minute}, "quick": {20 * time.Second, 30 * time.Second}} {
		if left := time.Until(sources.of(source).rest.until); left < want[0] || left > want[1] {
			t.Errorf("%s rests for %s", source, left)
		}
	}
}

// TestTeamsTakeTurnsWithTheirSources: one that has many cannot have all of them looked at first.
func TestTeamsTakeTurnsWithTheirSources(t *testing.T) {
	var sources []string
	for i := range 100 {
		sources = append(sources, fmt.Sprintf("evil/%d", i))
	}
	sources = append(sources, "shop/0", "shop/1", "pay/0")
	got := byTurns(sources, func(source string) string {
		team, _, _ := strings.Cut(source, "/")
		return team
	})
	want := []string{"evil/0", "shop/0", "pay/0", "evil/1", "shop/1", "evil/2", "evil/3"}
	if !slices.Equal(got[:len(want)], want) || len(got) != len(sources) {
		t.Errorf("got %v", got[:len(want)])
	}
}
