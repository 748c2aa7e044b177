// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// meshPolicy is a policy in the source, with a version of the proxy.
func meshPolicy(tag string) map[string]string {
	return map[string]string{"policy.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n" +
		"  istio: {injector: {builtIn: istio, overrides: {global: {tag: " + tag + "}}}}\n  namespaces:\n  - {name: shop, labels: {istio-injection: enabled}}\n"}
}

// rememberedChaos has applications that are built by kustomize, and a policy of the pipelines that is changed between the pushes.
func rememberedChaos(t *testing.T, n size, state string) *chaos {
	t.Helper()
	c := emptyChaos(t, n, n.pipelines)
	if state != "" {
		c.c.State = state
	}
	files := meshPolicy("1.29.0")
	for i := range n.pipelines {
		name := fmt.Sprintf("app%d", i)
		files["apps/"+name+"/kustomization.yaml"] = "resources: [app.yaml]\ncommonAnnotations: {built: kustomize}\n"
		text := strings.NewReplacer("branch: rendered", "branch: "+branchOf(i), "{builtIn: istio}", "{path: policy.yaml}").Replace(pipelineYAML(name, c.repository.URL, "  interval: 5s\n"))
		c.write(filepath.Join(c.c.Pipelines, name+".yaml"), text)
	}
	c.repository.Commit("kustomizations", files)
	pushed := 0
	c.sending = func(commit string) {
		if pushed++; pushed%3 == 0 {
			commit = c.repository.Commit("policy", meshPolicy(fmt.Sprintf("1.29.%d", pushed)))
		}
		c.tell(commit)
	}
	return c
}

// compareBuilt starts a daemon that builds everything and compares it with what was remembered.
func (c *chaos) compareBuilt() {
	c.t.Helper()
	for _, p := range c.processes {
		p.end()
	}
	found, err := filepath.Glob(filepath.Join(c.c.BuildCacheDir(), "*", "*-*"))
	if err != nil || len(found) < len(c.newest) {
		c.t.Errorf("%d builds are remembered, %v", len(found), err)
	}
	c.c.BuildCache.Check = true
	c.serve(c.c, false)
	c.tell(c.repository.Commit("last policy", meshPolicy("1.29.last")))
	for i := range c.newest {
		c.eventually(fmt.Sprintf("waiting for app%d to have the last policy", i), func() string {
			if text := c.repository.Git("show", c.of(i)+":"+c.file(i)); !strings.Contains(text, "proxyv2:1.29.last") {
				return text
			}
			return ""
		})
	}
	c.settle()
	log, err := os.ReadFile(c.logs)
	if err != nil || strings.Contains(string(log), "comparing the build") {
		c.t.Errorf("a build is not what was remembered, or %v", err)
	}
}

// TestKilledWhileBuildsAreRemembered: what a killed daemon has left of its memory is whole, or is not used.
func TestKilledWhileBuildsAreRemembered(t *testing.T) {
	c := rememberedChaos(t, sized(size{9, 3, 3}), "")
	c.serve(c.c, false)
	c.run()
	c.compareBuilt()
}

// TestRememberedOnAFullDisk fills the disk of the state directory again and again, also while the daemon is killed.
func TestRememberedOnAFullDisk(t *testing.T) {
	if !full() {
		t.Skip("LEFT OUT: PRERIG_E2E=full runs it; TestAStoreThatCannotBeWritten fills a disk always")
	}
	dir := smallDisk(t)
	c := rememberedChaos(t, size{100, 10, fullKills()}, filepath.Join(dir, "s"))
	c.patience = 3 * time.Second // it may not come up for as long as the disk is full
	c.serve(c.c, false)
	stop, stopped := make(chan struct{}), make(chan struct{})
	times := 0
	go func() {
		defer close(stopped)
		filler := filepath.Join(dir, "filler")
		defer os.Remove(filler)
		for {
			fill(t, filler)
			times++
			for _, wait := range []int{1200, 5000} {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(300+rand.IntN(wait)) * time.Millisecond):
				}
				_ = os.Remove(filler)
			}
		}
	}()
	c.quiet = func() { close(stop); <-stopped }
	c.run()
	c.compareBuilt()
	t.Logf("the disk was full %d times", times)
}
