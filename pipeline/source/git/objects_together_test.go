// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestATreeIsReadWhileTheNextIsMade reads the directories of one tree for the first time while the tree after it is asked
// for, which takes over what the first has read.
func TestATreeIsReadWhileTheNextIsMade(t *testing.T) {
	const trees, dirs = 40, 20
	repository := gittest.New(t).Repository(t, "config")
	files := map[string]string{}
	for i := range trees {
		for j := range dirs {
			files[fmt.Sprintf("%d/%d/a", i, j)] = fmt.Sprint(i, j)
		}
	}
	repository.Commit("first", files)
	m, r := mirror(t, t.TempDir(), repository.URL, git.DefaultLimits()), remote(t, repository.URL, nil)
	if _, err := m.Fetch(ctx, r, git.Ref{}); err != nil {
		t.Fatal(err)
	}
	roots := strings.Fields(repository.Git("ls-tree", "--format=%(objectname)", "HEAD"))
	if len(roots) != trees {
		t.Fatalf("%d directories", len(roots))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var reading sync.WaitGroup
		for _, root := range roots {
			files := m.Tree(&git.Commit{Tree: plumbing.NewHash(root)})
			reading.Go(func() {
				view := tree.NewView(files, tree.Limits{})
				for j := range dirs {
					if _, err := view.Read(fmt.Sprintf("%d/a", j)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		reading.Wait()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("reading one tree and making the next wait for each other")
	}
}
