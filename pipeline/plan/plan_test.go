// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/catalog"
)

func TestDebounceDoesNotPutOffForEver(t *testing.T) {
	p := &Planner{Debounce: 200 * time.Millisecond}
	begin := time.Now()
	if first := p.notBefore("a"); first.After(begin.Add(50 * time.Millisecond)) {
		t.Error("the first event waits")
	}
	second, third := p.notBefore("a"), p.notBefore("a")
	if !second.Equal(third) || second.Sub(begin) < 150*time.Millisecond || second.Sub(begin) > 300*time.Millisecond {
		t.Errorf("further events run after %s and %s", second.Sub(begin), third.Sub(begin))
	}
	if other := p.notBefore("b"); time.Until(other) > 0 {
		t.Error("another pipeline waits")
	}
	time.Sleep(time.Until(second) + time.Millisecond)
	if now := p.notBefore("a"); time.Until(now) > 0 {
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
