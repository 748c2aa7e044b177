// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
)

func removal(t *testing.T, pipeline, path string) publish.Change {
	t.Helper()
	c := change(t, pipeline, path)
	c.Remove = true
	return c
}

// TestOwnersOfOtherNamespacesAreNotNamed has two pipelines want one file: the second learns of the first only within its namespace.
func TestOwnersOfOtherNamespacesAreNotNamed(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	run(t, b, change(t, "vault/coin", "shop", configMap("a", "1")))
	for pipeline, named := range map[string]bool{"shop/web": false, "vault/safe": true, "web": false} {
		result := run(t, b, change(t, pipeline, "shop", configMap("a", "2")))
		err := result.Outcomes[0].Err
		if !errors.Is(err, publish.ErrOfAnother) || strings.Contains(err.Error(), "coin") != named || strings.Contains(err.Error(), "vault") != named {
			t.Errorf("%s is told %v", pipeline, err)
		}
	}
}

func TestARenamedPipelineKeepsItsFiles(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	run(t, b, change(t, "old", "shop", configMap("a", "1"), configMap("b", "1")))
	heir := change(t, "new", "shop", configMap("a", "1"), configMap("c", "1"))
	if result := run(t, b, heir); !errors.Is(result.Outcomes[0].Err, publish.ErrOfAnother) {
		t.Fatalf("a file of a pipeline that may be there still: %+v", result)
	} else if got := result.Outcomes[0].Err.Error(); !strings.Contains(got, "which pipeline old has written") {
		t.Errorf("the owner is not named: %s", got)
	}
	remove := removal(t, "old", "shop")
	remove.Successors = map[string]string{"new": "shop"}
	if result := run(t, b, remove); !errors.Is(result.Outcomes[0].Err, publish.ErrWaiting) || result.Changed {
		t.Fatalf("the removal did not wait: %+v", result)
	}
	heir.Predecessors = []string{"old", "unknown"}
	result := run(t, b, heir)
	if diff := cmp.Diff([]string{"shop/shop/configmap-c.yaml"}, result.Outcomes[0].Added); diff != "" || len(result.Outcomes[0].Modified) > 0 {
		t.Errorf("taking over: %+v", result)
	}
	result = run(t, b, remove)
	if diff := cmp.Diff([]string{"shop/shop/configmap-b.yaml"}, result.Outcomes[0].Deleted); diff != "" {
		t.Errorf("deleted: %s", diff)
	}
	want := ".prerig/README.md\n.prerig/pipelines/new.record\nshop/shop/configmap-a.yaml\nshop/shop/configmap-c.yaml"
	if got := repository.Git("ls-tree", "-r", "--name-only", "rendered"); got != want {
		t.Errorf("got %s", got)
	}
	message := repository.Git("log", "-1", "--format=%B", "rendered")
	for _, text := range []string{"Remove old: its pipeline was deleted\n", "Prerig-Pipeline: old\n", "Prerig-Removed: old\n", "Prerig-Version: v0.1.0"} {
		if !strings.Contains(message, text) {
			t.Errorf("the message lacks %q:\n%s", text, message)
		}
	}
	if again := run(t, b, remove); again.Changed {
		t.Errorf("removed twice: %+v", again)
	}
}

// TestNothingDiffersButTheOwner is a rename and nothing else: the files must not stay with the one that is removed.
func TestNothingDiffersButTheOwner(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	run(t, b, change(t, "old", "shop", configMap("a", "1")))
	heir := change(t, "new", "shop", configMap("a", "1"))
	heir.Predecessors = []string{"old"}
	if result := run(t, b, heir); !result.Changed || !result.Outcomes[0].Ownership {
		t.Errorf("got %+v", result)
	}
	if again := run(t, b, heir); again.Changed {
		t.Errorf("got %+v", again)
	}
	if result := run(t, b, removal(t, "old", "shop")); result.Changed {
		t.Errorf("a pipeline without files was removed with %+v", result)
	}
	if got := repository.Git("show", "rendered:shop/shop/configmap-a.yaml"); !strings.Contains(got, "name: a") {
		t.Errorf("got %s", got)
	}
}

// TestAdoptedFilesOutliveTheirFirstOwner has two owners of a file, as a pipeline could once adopt what is another's.
func TestAdoptedFilesOutliveTheirFirstOwner(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	run(t, b, change(t, "first", "shop", configMap("a", "1"), configMap("b", "1")))
	run(t, b, change(t, "second", "shop", configMap("c", "2")))
	own(t, repository, "second", "shop/shop/configmap-a.yaml")
	run(t, b, change(t, "second", "shop", configMap("a", "2")))
	run(t, b, removal(t, "first", "shop"))
	want := ".prerig/README.md\n.prerig/pipelines/second.record\nshop/shop/configmap-a.yaml"
	if got := repository.Git("ls-tree", "-r", "--name-only", "rendered"); got != want {
		t.Errorf("got %s", got)
	}
}

func TestSeveralRemovalsAreOneCommit(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	run(t, b, change(t, "a", "a", configMap("x", "1")), change(t, "b", "b", configMap("x", "1")), change(t, "c", "c", configMap("x", "1")))
	// Somebody has removed a file already; the record goes all the same.
	repository.InWork("fetch", "-q", "origin", "rendered")
	repository.InWork("checkout", "-q", "-b", "rendered", "FETCH_HEAD")
	repository.Commit("by hand", map[string]string{"b/shop/configmap-x.yaml": ""})
	run(t, b, removal(t, "a", "a"), removal(t, "b", "b"))
	want := ".prerig/README.md\n.prerig/pipelines/c.record\nc/shop/configmap-x.yaml"
	if got := repository.Git("ls-tree", "-r", "--name-only", "rendered"); got != want {
		t.Errorf("got %s", got)
	}
	if got := repository.Git("log", "-1", "--format=%s", "rendered"); !strings.HasPrefix(got, "Remove 2 deleted pipelines") {
		t.Errorf("got %s", got)
	}
}
