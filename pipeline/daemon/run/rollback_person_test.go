// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/publish"
)

// TestRollbackLeavesCommitsOfPeople has a person change the branch in several ways after the last publish. Nothing of theirs is lost, and
// where the last publish cannot be taken back without that, they are named.
func TestRollbackLeavesCommitsOfPeople(t *testing.T) {
	const person = "Ann <ann@example.com>"
	for name, tc := range map[string]struct {
		edit    func(w *works, file string)
		refused bool
	}{
		"nothing": {func(*works, string) {}, false},
		"the file of the publish": {func(w *works, file string) {
			w.byHand("Hot fix by hand", file, "by hand")
		}, true},
		"the file is deleted": {func(w *works, file string) {
			w.byHand("Delete by hand", file, "")
		}, true},
		"with trailers of their own": {func(w *works, file string) {
			w.byHand("Hot fix\n\nPrerig-Pipeline: a\nPrerig-Version: v1", file, "by hand")
		}, true},
		"a file beside": {func(w *works, _ string) {
			w.byHand("Add a note", "a/NOTE.md", "note")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorks(t, "a")
			w.repository.Commit("one", map[string]string{"a/text": "one"})
			w.doAll("1", "a")
			before := w.repository.Git("show", "rendered:a/configmap-x.yaml")
			w.repository.Commit("two", map[string]string{"a/text": "two"})
			w.doAll("2", "a")
			tc.edit(w, "a/configmap-x.yaml")
			tip := w.repository.Git("rev-parse", "rendered")
			_, err := w.promoter().Rollback(t.Context(), []string{"a"}, "", "ann", everybody)
			if !tc.refused {
				if err != nil {
					t.Fatal(err)
				}
				if now := w.repository.Git("show", "rendered:a/configmap-x.yaml"); now != before {
					t.Errorf("the last publish was not taken back: %s", now)
				}
				return
			}
			if !errors.Is(err, publish.ErrEditedSince) || !strings.Contains(err.Error(), person) || !strings.Contains(err.Error(), tip[:12]) {
				t.Errorf("got %v", err)
			}
			if now := w.repository.Git("rev-parse", "rendered"); now != tip {
				t.Errorf("the branch has moved to %s", now)
			}
			if hold := w.control("a").OnHold; hold != nil {
				t.Errorf("it is on hold: %+v", hold)
			}
			if _, err := w.promoter().Rollback(t.Context(), []string{"a"}, tip, "ann", everybody); !errors.Is(err, publish.ErrNotPublished) || !strings.Contains(err.Error(), person) {
				t.Errorf("by its name: %v", err)
			}
		})
	}
}

// byHand has a person commit one file to the branch of results; "" deletes it.
func (w *works) byHand(message, file, content string) {
	w.t.Helper()
	w.repository.InWork("fetch", "-q", w.repository.Bare, "rendered")
	w.repository.InWork("checkout", "-q", "-B", "by-hand", "FETCH_HEAD")
	at := filepath.Join(w.repository.Work, filepath.FromSlash(file))
	if content == "" {
		w.repository.InWork("rm", "-q", file)
	} else if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.repository.InWork("add", "-A")
	w.repository.InWork("commit", "-q", "-m", message)
	w.repository.InWork("push", "-q", w.repository.Bare, "HEAD:rendered")
	w.repository.InWork("checkout", "-q", "main")
}

// TestCommitsThatPutBackNameWhatTheyUndo has a person's change of a file be put back.
func TestCommitsThatPutBackNameWhatTheyUndo(t *testing.T) {
	w := newWorks(t, "a")
	w.repository.Commit("one", map[string]string{"a/text": "one"})
	w.doAll("1", "a")
	w.byHand("Scale up by hand", "a/configmap-x.yaml", "by hand")
	theirs := w.repository.Git("rev-parse", "rendered")
	if err := w.runner.Do(t.Context(), queue.Job{Pipeline: "a", Cause: "2", Force: true}); err != nil {
		t.Fatal(err)
	}
	subject := w.repository.Git("log", "-1", "--format=%s", "rendered")
	if want := `Put back a: undo ` + theirs[:12] + ` "Scale up by hand"`; subject != want {
		t.Errorf("the commit is called %q, want %q", subject, want)
	}
	if body := w.repository.Git("log", "-1", "--format=%b", "rendered"); !strings.Contains(body, "Prerig-Reverts: "+theirs) {
		t.Errorf("the trailers are %s", body)
	}
	// With a new source it is a render, which names what it undoes as well.
	w.byHand("Scale up again", "a/configmap-x.yaml", "again")
	theirs = w.repository.Git("rev-parse", "rendered")
	w.repository.Commit("two", map[string]string{"a/text": "two"})
	if err := w.runner.Do(t.Context(), queue.Job{Pipeline: "a", Cause: "3", Force: true}); err != nil {
		t.Fatal(err)
	}
	if text := w.repository.Git("log", "-1", "--format=%B", "rendered"); !strings.HasPrefix(text, "Render a: two") || !strings.Contains(text, "Prerig-Reverts: "+theirs) {
		t.Errorf("the commit is %s", text)
	}
}
