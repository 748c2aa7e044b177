// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
)

// files gives a tree.
func files(t *testing.T, all map[string]string) *tree.Tree {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	for name, text := range all {
		if err := b.Add(name, tree.File, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

func TestNeeds(t *testing.T) {
	at := files(t, map[string]string{"app.yaml": "1", "other": "1"})
	view := tree.NewView(at, tree.Limits{})
	_, _ = view.Read("app.yaml")
	_, _ = view.Lookup("kustomization.yaml")
	b := &Builder{Version: "1"}
	plain := &v1alpha1.RenderPipeline{Spec: v1alpha1.RenderPipelineSpec{Publish: []v1alpha1.Publish{{Git: &v1alpha1.GitPublish{Branch: "rendered"}}}}}
	proposed := &v1alpha1.RenderPipeline{Spec: v1alpha1.RenderPipelineSpec{Publish: []v1alpha1.Publish{{Git: &v1alpha1.GitPublish{Branch: "env", Propose: &v1alpha1.Propose{}}}}}}
	for name, test := range map[string]struct {
		pipeline *v1alpha1.RenderPipeline
		change   func(*status.Seen)
		tree     map[string]string
		builder  *Builder
		reason   string // "": not needed
	}{
		"as it was":                   {},
		"never rendered":              {change: func(s *status.Seen) { s.Outcome = "" }, reason: "it was never rendered"},
		"another version of Prerig":   {builder: &Builder{Version: "2"}, reason: "the pipeline, a policy or Prerig has changed"},
		"another request":             {change: func(s *status.Seen) { s.Request = "x" }, reason: "the pipeline, a policy or Prerig has changed"},
		"a build that failed":         {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, StageBuild }},
		"a gate that was closed":      {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, StageGate }},
		"a source that failed":        {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, StageSource }, reason: "the last run did not come to an end"},
		"publishing that failed":      {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, StagePublish }, reason: "the last run did not come to an end"},
		"a failed build that changes": {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, StageBuild }, tree: map[string]string{"app.yaml": "2"}, reason: "app.yaml was changed"},
		"no record":                   {change: func(s *status.Seen) { s.Record = nil }, reason: "nothing is recorded of an earlier render"},
		"another file":                {tree: map[string]string{"app.yaml": "1", "other": "2"}},
		"a file that was looked for":  {tree: map[string]string{"app.yaml": "1", "kustomization.yaml": "2"}, reason: "kustomization.yaml was added"},
		"a file that is gone":         {tree: map[string]string{"other": "1"}, reason: "app.yaml was removed"},
		"a note for the promoter":     {pipeline: proposed, change: func(s *status.Seen) { s.Revision = "main@sha1:0" }, reason: "the revision is to be noted for the promoter"},
		"a note that is there":        {pipeline: proposed},
		"another revision":            {change: func(s *status.Seen) { s.Revision = "main@sha1:0" }},
	} {
		t.Run(name, func(t *testing.T) {
			p := plain
			if test.pipeline != nil {
				p = test.pipeline
			}
			seen := status.Seen{Outcome: status.Published, Revision: "main@sha1:1", Request: b.RequestDigest(p), Record: view.Record()}
			if test.change != nil {
				test.change(&seen)
			}
			now, builder := at, b
			if test.tree != nil {
				now = files(t, test.tree)
			}
			if test.builder != nil {
				builder = test.builder
			}
			reason, needed := builder.Needs(p, &status.State{Seen: seen}, &source.Snapshot{Tree: now, Revision: "main@sha1:1"})
			if diff := cmp.Diff(test.reason, reason); diff != "" || needed != (test.reason != "") {
				t.Errorf("needed %v: %s", needed, diff)
			}
		})
	}
}

func TestRequestsAreHandledOnce(t *testing.T) {
	p, state := &v1alpha1.RenderPipeline{}, &status.State{}
	for i, step := range []struct {
		annotation, control string
		changed             bool
		handled             string
	}{
		{"", "", false, ""},
		{"", "t1", true, "t1"},
		{"", "t1", false, "t1"},
		{"a1", "t1", true, "a1"},
		{"a1", "t1", false, "a1"}, // an old request does not come back after a newer one
		{"a1", "t2", true, "t2"},
		{"a2", "t3", true, "t3"}, // somebody waits for t3
		{"a2", "t3", false, "t3"},
	} {
		p.Metadata.Annotations = map[string]string{meta.ReconcileRequestAnnotation: step.annotation}
		control := status.Control{RequestedAt: step.control, Force: true}
		was := requested(state, control)
		if changed := noteRequests(p, state, control); changed != step.changed || state.Status.LastHandledReconcileAt != step.handled {
			t.Errorf("step %d: changed %v, handled %q; want %v, %q", i, changed, state.Status.LastHandledReconcileAt, step.changed, step.handled)
		}
		if was != strings.HasPrefix(step.handled, "t") && step.changed || requested(state, control) {
			t.Errorf("step %d: requested %v before, %v after", i, was, requested(state, control))
		}
	}
}

func TestMessagesFitIntoAStatus(t *testing.T) {
	for name, test := range map[string]struct{ err, want string }{
		"short":         {"a b", "a b"},
		"several lines": {"first\nsecond\r\n\n third\n", "first second  third"},
		"long":          {strings.Repeat("x", 3000), strings.Repeat("x", 2000) + "…"},
		"cut in a rune": {"x" + strings.Repeat("é", 3000), "x" + strings.Repeat("é", 999) + "…"},
	} {
		if got := message(errors.New(test.err)); got != test.want || !utf8.ValidString(got) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestStageOf(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		stage string
		final bool
	}{
		"a gate":             {fmt.Errorf("to x: %w", &publish.GateError{}), StageGate, true},
		"somebody's branch":  {fmt.Errorf("to x: %w", publish.ErrUnmanaged), StagePublish, true},
		"somebody's file":    {fmt.Errorf("to x: %w", publish.ErrNotOwned), StagePublish, true},
		"what is no file":    {fmt.Errorf("%w: a/b", errContent), StagePublish, true},
		"a server that errs": {errors.New("no route"), StagePublish, false},
	} {
		if got := stageOf(test.err); got.Stage != test.stage || got.Final != test.final || !errors.Is(got, test.err) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTryingAgainTakesLongerEachTimeAndHasABound(t *testing.T) {
	last := time.Duration(0)
	for failures := range 70 {
		wait := backoff(failures, "a")
		if wait < last || wait > 6*time.Minute || wait < time.Second {
			t.Errorf("after %d failures: %s after %s", failures, wait, last)
		}
		last = wait
	}
	if last < 5*time.Minute || backoff(10, "a") == backoff(10, "b") {
		t.Errorf("at last %s, two pipelines %s and %s", last, backoff(10, "a"), backoff(10, "b"))
	}
}

func TestFindings(t *testing.T) {
	response := &render.Response{Warnings: []string{"w"}, Results: []result.Result{{Severity: result.Info, Message: "silent"}, {Severity: result.Error, Message: "loud"}}}
	got := findings(response)
	if len(got) != 2 || got[0] != "warning: w" || !strings.Contains(got[1], "loud") {
		t.Errorf("got %q", got)
	}
	for range 30 {
		response.Warnings = append(response.Warnings, "w")
	}
	if got := findings(response); len(got) != maxFindings+1 || got[maxFindings] != "and more" {
		t.Errorf("got %d findings, the last is %q", len(got), got[len(got)-1])
	}
}

func TestTarget(t *testing.T) {
	for want, to := range map[string]v1alpha1.Publish{
		"https://h/r.git rendered shop":   {Git: &v1alpha1.GitPublish{URL: "https://h/r.git", Branch: "rendered", Path: "shop"}},
		"https://h/r.git env-next ":       {Git: &v1alpha1.GitPublish{URL: "https://h/r.git", Branch: "env", Propose: &v1alpha1.Propose{}}},
		"https://h/r.git env-next/east .": {Git: &v1alpha1.GitPublish{URL: "https://h/r.git", Branch: "env", Path: ".", Propose: &v1alpha1.Propose{ActivePath: "east"}}},
		"oci://h/r:latest":                {OCI: &v1alpha1.OCIPublish{URL: "oci://h/r"}},
		"oci://h/r:v1":                    {OCI: &v1alpha1.OCIPublish{URL: "oci://h/r", Tags: []string{"v1", "latest"}}},
	} {
		if got := Target(to); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
