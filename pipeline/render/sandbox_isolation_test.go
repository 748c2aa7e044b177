// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestARendererThatCannotBeStarted is not the fault of what is to be rendered.
func TestARendererThatCannotBeStarted(t *testing.T) {
	p := pool(t, render.Options{Command: []string{filepath.Join(t.TempDir(), "gone")}})
	_, err := p.Render(ctx, tree.NewView(build(t, smallApp()), tree.Limits{}), request("app"))
	if !errors.Is(err, render.ErrStart) || !render.IsUnfinished(err) {
		t.Errorf("got %v", err)
	}
}

func TestBadRenderers(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := tree.NewView(build(t, map[string]string{"app/x": "x"}), tree.Limits{})
	for kind, want := range map[string]string{
		"garbage": "the renderer", "silent": "ended without a result", "killed": "signal: killed", "hang": "took too long", "spin": "took too long",
		"endless": "size of the result", "eat": "more memory than its limit",
		"ask": "questions without an end", "long": "that is too long",
		// Few bytes that take a lot of memory.
		"empty": "lists of empty elements", "many": "size of the result", "brief": "questions without an end",
	} {
		t.Run(kind, func(t *testing.T) {
			r := request("app")
			// A busy machine takes seconds to start a process: only those that do not end are given up after three.
			r.Limits.Timeout, r.Limits.Output = time.Minute, 1<<20
			within := 23 * time.Second
			switch kind {
			case "eat":
				r.Limits.Memory, within = 300<<20, 80*time.Second
			case "ask", "endless":
				within = 80 * time.Second
			case "hang", "spin":
				r.Limits.Timeout = 3 * time.Second
			}
			start := time.Now()
			p := pool(t, render.Options{Command: []string{self, kind}})
			p.LetAsk(1 << 20)
			_, err := p.Render(ctx, files, r)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			ended, late := kind == "silent" || kind == "killed", kind == "hang" || kind == "spin"
			if errors.Is(err, render.ErrEnded) != ended || errors.Is(err, render.ErrTimeout) != late || render.IsUnfinished(err) != (ended || late) {
				t.Errorf("%v is taken for another kind of error", err)
			}
			if took := time.Since(start); took > within {
				t.Errorf("took %s", took)
			}
		})
	}
	if _, err := pool(t, render.Options{Command: []string{"/nonexistent/renderer"}}).Render(ctx, files, request("app")); err == nil {
		t.Error("a renderer that does not exist rendered")
	}
}

func TestCancel(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	time.AfterFunc(100*time.Millisecond, cancel)
	files := tree.NewView(build(t, map[string]string{"app/x": "x"}), tree.Limits{})
	_, err = pool(t, render.Options{Command: []string{self, "hang"}}).Render(cancelled, files, request("app"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWarmPool(t *testing.T) {
	p := pool(t, render.Options{Warm: 2})
	source := build(t, map[string]string{"app/kustomization.yaml": "resources: [x.yaml]\n", "app/x.yaml": configMap})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3 {
				response, err := p.Render(ctx, tree.NewView(source, tree.Limits{}), request("app"))
				if err != nil || len(response.Objects) != 1 {
					t.Errorf("%+v, %v", response, err)
				}
			}
		})
	}
	wg.Wait()
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cNAME}\n"
