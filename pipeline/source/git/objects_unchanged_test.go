// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// A commit beside 1,000 applications is seen to touch none of them without reading all their directories again.
func TestUnchangedDirectoriesAreNotReadAgain(t *testing.T) {
	const apps = 1000
	repository := gittest.New(t).Repository(t, "config")
	files := map[string]string{"docs/a": "1"}
	for i := range apps {
		files[fmt.Sprintf("apps/%d/app.yaml", i)] = fmt.Sprint(i)
	}
	repository.Commit("first", files)
	m, r := mirror(t, t.TempDir(), repository.URL, git.DefaultLimits()), remote(t, repository.URL, nil)
	fetch := func() *tree.Tree {
		t.Helper()
		commit, err := m.Fetch(ctx, r, git.Ref{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Tree(commit)
	}
	first := fetch()
	records := make([]tree.Record, apps)
	for i := range records {
		view := tree.NewView(first, tree.Limits{})
		if _, err := view.Read(fmt.Sprintf("apps/%d/app.yaml", i)); err != nil {
			t.Fatal(err)
		}
		records[i] = view.Record()
	}
	repository.Commit("beside", map[string]string{"docs/a": "2"})
	second := fetch()
	begin := time.Now()
	for i, record := range records {
		if reason, affected := record.Affected(second); affected {
			t.Fatalf("application %d is affected: %s", i, reason)
		}
	}
	t.Logf("%d applications were looked at in %s", apps, time.Since(begin))
	repository.Commit("one", map[string]string{"apps/7/app.yaml": "x"})
	third := fetch()
	for i, record := range records {
		if _, affected := record.Affected(third); affected != (i == 7) {
			t.Errorf("application %d: affected %v", i, affected)
		}
	}
}
