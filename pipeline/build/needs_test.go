// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// files returns a tree.
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
		"never rendered":              {change: func(s *status.Seen) { s.Outcome = "" }, reason: "it has never been rendered"},
		"another version of Prerig":   {builder: &Builder{Version: "2"}, reason: "the pipeline, a policy or Prerig has changed"},
		"another request":             {change: func(s *status.Seen) { s.Request = "x" }, reason: "the pipeline, a policy or Prerig has changed"},
		"a build that failed":         {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, status.StageBuild }},
		"a gate that was closed":      {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, status.StageGate }},
		"a source that failed":        {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, status.StageSource }, reason: "the last run did not finish"},
		"publishing that failed":      {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, status.StagePublish }, reason: "the last run did not finish"},
		"a failed build that changes": {change: func(s *status.Seen) { s.Outcome, s.Stage = status.Failed, status.StageBuild }, tree: map[string]string{"app.yaml": "2"}, reason: "app.yaml was changed"},
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
