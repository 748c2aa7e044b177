// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/server"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// obeyed are what a terminal obeys: escape sequences, and what turns the direction of writing around.
const obeyed = "\x1b]0;pwn\x07\x1b[2J\u009b31m\u202e\u2066"

// checkShown fails where an output has what a terminal obeys, or lacks what it should show.
func checkShown(t *testing.T, what, text, want string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			t.Errorf("%s: the output has %U: %.600q", what, r, text)
			return
		}
	}
	if !strings.Contains(text, want) {
		t.Errorf("%s: the output lacks %q: %.600q", what, want, text)
	}
}

// hostileDaemon answers the calls of commands with texts of others in every place that they print.
func hostileDaemon(t *testing.T) string {
	t.Helper()
	word := "evil" + obeyed
	patch := "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+" + word + "\n"
	file := status.FileDiff{Path: word, Kind: "modified", LinesLeftOut: 1, Patch: patch}
	found := &status.Diff{LeftOut: 1, Files: []status.FileDiff{file}}
	p := server.Pipeline{Name: "team/web", File: word, State: server.StateFailing, Source: word, Message: word}
	p.Sources = []v1alpha1.SourceRevision{{URL: word, Revision: word, MountPath: word}}
	p.OnHold = &status.OnHold{By: word, Reason: word}
	p.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Failing", Message: word},
	}
	undone := status.Rollback{
		Pipeline: word, Pipelines: []string{word}, Commit: word, Target: word,
		State: status.RollbackOpen, Message: word, URL: word, At: time.Now(),
	}
	stage := promotion.StageStatus{Name: word, State: promotion.StageOpen, Head: word, Message: word, URL: word}
	origin := catalog.Status{Name: word, Source: word, Revision: word, Error: word, Checked: time.Now()}
	answers := map[string]any{
		"/api/v1/pipelines": []server.Pipeline{p},
		"/api/v1/promote":   server.PromoteAnswer{Released: []string{word}, Groups: []string{word}, DryRun: true},
		"/api/v1/hold":      server.Answer{Pipelines: []string{word}},
		"/api/v1/remove": server.RemoveAnswer{Answer: server.Answer{Pipelines: []string{word}},
			Plans: []prune.Removal{{Pipeline: word, Policy: v1alpha1.DeletionDelete, Targets: []string{word}, Message: word}}},
		"/api/v1/reconcile": server.ReconcileAnswer{Plans: []server.ReconcilePlan{{Pipeline: word, Diff: found}}},
		"/api/v1/rollback": server.RollbackAnswer{Plans: []promotion.RollbackPlan{
			{Rollback: undone, Subject: word, Diff: found}, {Rollback: undone, Subject: word},
		}},
		"/api/v1/promotions": server.Promotions{
			Promotions: []promotion.Promotion{{URL: word, Branch: word, Waves: true, Label: word, Stages: []promotion.StageStatus{stage}}},
			Rollbacks:  []status.Rollback{undone},
		},
		"/api/v1/catalog": server.Catalog{
			Status: origin, Catalogs: []catalog.Status{origin}, Problem: word,
			Removals: []prune.Removal{{Pipeline: word, Targets: []string{word}, Message: word}},
			Removed:  []status.Removed{{Pipeline: word, Message: word, At: time.Now()}},
		},
	}
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]string{"error": word}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(daemon.Close)
	return daemon.URL
}

// TestTextsOfOthersAreVisibleWithTheDaemonsCommands: names, messages and differences that a daemon tells are partly of
// servers and authors, and a terminal shows them instead of obeying them.
func TestTextsOfOthersAreVisibleWithTheDaemonsCommands(t *testing.T) {
	url := hostileDaemon(t)
	for _, args := range [][]string{
		{"daemon", "promote", "team/web", "--dry-run"}, {"daemon", "promote", "team/web"},
		{"daemon", "remove", "team/web", "--dry-run"}, {"daemon", "remove", "team/web"},
		{"daemon", "reconcile", "team/web", "--force", "--dry-run"}, {"daemon", "rollback", "team/web", "--dry-run"}, {"daemon", "hold", "team/web"},
		{"daemon", "status"}, {"daemon", "status", "team/web"},
	} {
		_, out, err := prerig(t, append(args, "--server", url, "--token-file", tokenFile(t))...)
		checkShown(t, strings.Join(args, " "), out+err, "evil")
	}
}

// TestHiddenCharactersOfManifestsAreVisible: a difference shows the characters that would change how a reviewer
// reads it, also in comments.
func TestHiddenCharactersOfManifestsAreVisible(t *testing.T) {
	original := arrange(t)
	const hidden = "\u202e\u2066\u200b\u200d\u2060"
	changed := strings.Replace(original, "metadata:", "metadata: # evil"+hidden, -1)
	changed = strings.Replace(changed, "spec:", "spec: # evil"+hidden, -1)
	must(t, os.WriteFile("web.yaml", []byte(changed), 0o644))
	for _, args := range [][]string{
		{"inject", "-p", "tiny.yaml", "--diff", "web.yaml"}, {"inject", "-p", "tiny.yaml", "--diff", "--remove", "web.yaml"},
		{"inject", "-p", "tiny.yaml", "--check", "--diff", "web.yaml"},
	} {
		_, out, err := prerig(t, args...)
		if strings.ContainsAny(out+err, hidden) {
			t.Errorf("%v: the output has hidden characters: %.600q", args, out+err)
		}
		if !strings.Contains(strings.Join(args, " "), "--remove") {
			checkShown(t, strings.Join(args, " "), out+err, "evil<U+202E>")
		}
	}
}

func tokenFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
