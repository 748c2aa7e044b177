// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
)

// TestASourceThatIsNoLongerPolledIsNoticed: by the time that has passed since the last look at it has ended, whatever
// keeps others from being made.
func TestASourceThatIsNoLongerPolledIsNoticed(t *testing.T) {
	dir := t.TempDir()
	for name, source := range map[string]struct{ url, interval string }{
		"a": {"https://h/one", "1m"}, "b": {"https://h/one", "10m"}, "c": {"https://h/two", "1m"}, "d": {"https://h/three", "1m"}, "never": {"https://h/four", "0s"},
	} {
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s}\nspec:\n  source: {git: {url: %q, ref: {branch: main}}}\n  interval: %s\n"+
			"  build: {path: apps}\n  publish: [{git: {url: https://h/out, branch: rendered, path: %[1]s}}]\n", name, source.url, source.interval)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Planner{Catalog: c, PipelinesDir: dir}
	expect := func(when string, most bool, want ...string) {
		t.Helper()
		got := p.Unpolled()
		if !slices.Equal(got.Pipelines, want) || got.Most() != most {
			t.Errorf("%s: %+v, most: %t; want %v", when, got, got.Most(), want)
		}
	}
	expect("before the timer runs", false)
	p.timing = time.Now()
	expect("at the start", false)
	ago := func(d time.Duration) {
		for _, one := range p.sources.known {
			one.expected = time.Now().Add(-d)
		}
	}
	ago(4 * time.Minute)
	expect("within three intervals and the grace", false)
	ago(6 * time.Minute)
	expect("after that", true, "a", "c", "d")
	ago(time.Hour)
	expect("after an hour", true, "a", "b", "c", "d")
	for _, name := range []string{"c", "d"} {
		e, _ := c.Get(name)
		p.sources.recordPollEnd(p.sources.keyOf(e, p.PipelinesDir))
	}
	expect("one of three", false, "a", "b")
	e, _ := c.Get("a")
	p.sources.recordPollEnd(p.sources.keyOf(e, p.PipelinesDir))
	expect("all were polled", false)
	for _, name := range []string{"a", "b", "c", "d", "never"} {
		p.forgetPipeline(name)
	}
	if len(p.sources.known) != 0 {
		t.Errorf("%v are remembered of pipelines that are gone", p.sources.known)
	}
}
