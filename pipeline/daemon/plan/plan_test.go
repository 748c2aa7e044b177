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

func TestDebounceDoesNotPutOffForEver(t *testing.T) {
	p := &Planner{Debounce: 200 * time.Millisecond}
	begin := time.Now()
	if first := p.earliestRunTime("a"); first.After(begin.Add(50 * time.Millisecond)) {
		t.Error("the first event waits")
	}
	second, third := p.earliestRunTime("a"), p.earliestRunTime("a")
	if !second.Equal(third) || second.Sub(begin) < 150*time.Millisecond || second.Sub(begin) > 300*time.Millisecond {
		t.Errorf("further events run after %s and %s", second.Sub(begin), third.Sub(begin))
	}
	if other := p.earliestRunTime("b"); time.Until(other) > 0 {
		t.Error("another pipeline waits")
	}
	time.Sleep(time.Until(second) + time.Millisecond)
	if now := p.earliestRunTime("a"); time.Until(now) > 0 {
		t.Error("an event after the time waits")
	}
}

func TestEachPipelineIsDueOnceInItsInterval(t *testing.T) {
	dir := t.TempDir()
	for i, interval := range []string{"10s", "60s", "0s"} {
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: p%d}\nspec: {source: {git: {url: https://h/%[1]d}}, interval: %s}\n", i, interval)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Planner{Catalog: c, PipelinesDir: dir}
	start := time.Unix(1_790_000_000, 0)
	counts, moments := map[string]int{}, map[string]int{}
	for s := range 120 {
		for _, key := range p.duePipelines(start.Add(time.Duration(s)*time.Second), start.Add(time.Duration(s+1)*time.Second)) {
			counts[key]++
			moments[key] = s
		}
	}
	if counts["p0"] != 12 || counts["p1"] != 2 || counts["p2"] != 0 {
		t.Errorf("due: %v", counts)
	}
	again := &Planner{Catalog: c, PipelinesDir: dir}
	last := moments["p1"]
	if due := again.duePipelines(start.Add(time.Duration(last)*time.Second), start.Add(time.Duration(last+1)*time.Second)); len(due) == 0 {
		t.Error("after a restart the moment is another")
	}
}

// TestNoIntervalIsLostInAnotherLookAtItsSource has sources with two pipelines, and looks that last until the second tick after they began.
// Depending on its moment, an interval of the one always falls into a look for the other.
func TestNoIntervalIsLostInAnotherLookAtItsSource(t *testing.T) {
	dir := t.TempDir()
	const sources = 20
	for i := range sources {
		for _, interval := range []string{"3s", "6s"} {
			text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: every-%s-%d}\nspec: {source: {git: {url: https://h/%[2]d}}, interval: %[1]s}\n", interval, i)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", interval, i)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Planner{Catalog: c, PipelinesDir: dir}
	start := time.Unix(1_790_000_000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	looks := map[string]int{}
	for s := range 122 { // two more for what is postponed
		p.endInterval("", at(s-1))
		var due []string
		if s < 120 {
			due = p.duePipelines(at(s), at(s+1))
		}
		for _, key := range p.beginInterval(due, at(s+1)) {
			looks[key]++
		}
	}
	for i := range sources {
		if slow, fast := looks[fmt.Sprintf("every-6s-%d", i)], looks[fmt.Sprintf("every-3s-%d", i)]; slow != 20 || fast != 40 {
			t.Errorf("source %d: of 20 and 40 intervals, %d and %d are looked at", i, slow, fast)
		}
	}
}

// TestAPostponedPipelineMayBeGone leaves two pipelines out, of which one is removed and one cannot be read when their turn comes.
func TestAPostponedPipelineMayBeGone(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		write(name, "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: "+name+"}\nspec: {source: {git: {url: https://h/x}}}\n")
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Planner{Catalog: c, PipelinesDir: dir}
	first, second := time.Unix(1_790_000_000, 0), time.Unix(1_790_000_001, 0)
	p.beginInterval([]string{"a"}, first)
	if out := p.beginInterval([]string{"a", "b", "c"}, second); len(out) > 0 {
		t.Errorf("%v are looked at while their source is", out)
	}
	write("c", "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: c}\nspec: {unknown: 1}\n")
	if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	p.endInterval("", first)
	if out := p.beginInterval(nil, second); !slices.Equal(out, []string{"a"}) {
		t.Errorf("%v are looked at", out)
	}
}
