// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// sharing serves two pipelines that publish to one branch, avault/coin of others and shop/web, and returns the promoter's view of all.
func sharing(t *testing.T, others, own string) (*neighbours, promotion.Promotion) {
	t.Helper()
	text := func(namespace, name, wave, url, more string) string {
		return fmt.Sprintf("---\napiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: %s, labels: {wave: %s}}\nspec:\n"+
			"  source: {git: {url: \"https://git.example.com/%[1]s.git\"}}\n  build: {path: a}\n"+
			"  publish: [{git: {url: %[4]q, branch: rendered, pullRequest: {provider: Gitea, secretRef: {name: bot}, %[5]s}}}]\n", name, namespace, wave, url, more)
	}
	s := with(t, map[string]string{
		"a.yaml": text("avault", "coin", "dev", "https://git.example.com/rendered.git", others), "b.yaml": text("shop", "web", "prod", "https://git.example.com/rendered", own),
	})
	for _, e := range s.Catalog.All() {
		if e.Err != nil {
			t.Fatal(e.Err)
		}
		state := &status.State{}
		state.Ready(time.Now(), true, "Reason", "done", false)
		one := v1alpha1.Published{Target: e.Pipeline.Spec.Publish[0].Target()}
		if e.Key == "avault/coin" {
			one.PullRequest = &v1alpha1.PullRequestStatus{Number: 7, URL: "https://git.example.com/avault/pulls/7", State: v1alpha1.PullRequestOpen,
				Head: e.Pipeline.Spec.Publish[0].Git.PullRequest.Head, HeadCommit: "c1", Since: metav1.Now(), Message: "avault waits"}
		}
		state.Status.Published = []v1alpha1.Published{one}
		if _, err := s.Store.Save(t.Context(), e.Key, state, 0); err != nil {
			t.Fatal(err)
		}
	}
	s.Promoter = &promotion.Promoter{Catalog: s.Catalog, Store: s.Store, Queue: s.Queue, Log: s.Log}
	n := serveNeighbours(t, s)
	all := s.Promoter.Promotions(func(string) bool { return true })
	if len(all) != 1 {
		t.Fatalf("they share %d branches", len(all))
	}
	return n, all[0]
}

// TestPromotionsOfOthersAreNotShown decides about what two teams share, and asks every address that shows it with a token of one of them.
func TestPromotionsOfOthersAreNotShown(t *testing.T) {
	const (
		all   = "groupBy: All, merge: WhenGreen"
		waves = "groupBy: Label, label: wave, waves: {order: [dev, prod]}"
	)
	open := &pullrequest.Request{State: pullrequest.StateOpen, HeadCommit: "c1"}
	for name, tc := range map[string]struct {
		others, own string
		stages      func(s []promotion.Stage)
		// older has only the text be stored, without what it names.
		older bool
		full  string
	}{
		"on hold":                  {others: all, own: all, stages: func(s []promotion.Stage) { s[0].Request, s[0].OnHold = open, "avault/coin" }, full: "avault/coin is on hold"},
		"on hold, older":           {others: all, own: all, older: true, stages: func(s []promotion.Stage) { s[0].Request, s[0].OnHold = open, "avault/coin" }, full: "avault/coin is on hold"},
		"first by its name":        {others: "head: shared, groupBy: All", own: "head: shared, groupBy: All", stages: func(s []promotion.Stage) { s[0].Request = open }, full: "waits for people"},
		"waits for another":        {others: all + ", mergeWhen: {after: [{group: avaults}]}", own: all, stages: func(s []promotion.Stage) { s[0].Request, s[0].When.After = open, []v1alpha1.After{{Group: "avaults"}} }, full: "the group avaults"},
		"a wave before waits":      {others: waves + ", head: avault-dev", own: waves, stages: func(s []promotion.Stage) { s[0].Waits = 1 }, full: "waits for dev to be merged"},
		"a wave before fails":      {others: waves + ", head: avault-dev", own: waves, stages: func(s []promotion.Stage) { s[0].Failing = "avault/coin" }, full: "waits for dev: avault/coin fails"},
		"a wave before, older":     {others: waves, own: waves, older: true, stages: func(s []promotion.Stage) { s[0].Failing = "avault/coin" }, full: "waits for dev: avault/coin fails"},
		"a wave before is stopped": {others: waves, own: waves, stages: stopped, full: "after the merge the status avault-ci is red"},
		"is stopped, older":        {others: waves, own: waves, older: true, stages: stopped, full: "after the merge the status avault-ci is red"},
	} {
		n, shared := sharing(t, tc.others, tc.own)
		in := promotion.Input{Now: time.Now()}
		for i, one := range shared.Stages {
			in.Stages = append(in.Stages, promotion.Stage{Name: one.Name, Head: one.Head, HeadCommits: []string{"c1"}, Merge: v1alpha1.MergeWhenGreen})
			if i == len(shared.Stages)-1 {
				in.Stages[i].Waits = 1
			}
		}
		if shared.Waves {
			in.Waves = &v1alpha1.Waves{}
		} else if strings.HasPrefix(tc.own, "head") {
			in.Stages[0].Merge = v1alpha1.MergeManual
		}
		tc.stages(in.Stages)
		n.decided(t, shared, in, tc.older)
		if _, body := n.ask(t, "auditor", "/api/v1/promotions", ""); !strings.Contains(body, tc.full) || !strings.Contains(body, "/avault/pulls/") {
			t.Errorf("%s: who may read all is told %s", name, body)
		}
		for _, path := range []string{"/api/v1/promotions", "/pull-requests", "/", "/pipeline?name=shop/web", "/api/v1/pipelines", "/api/v1/catalog", "/api/v1/previews"} {
			if code, body := n.ask(t, "reader", path, ""); code != http.StatusOK || strings.Contains(body, "avault") {
				t.Errorf("%s: the other team gets of %s %d\n%s", name, path, code, body)
			}
		}
		_, body := n.ask(t, "reader", "/api/v1/promotions", "")
		var got Promotions
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Promotions) != 1 || len(got.Promotions[0].Stages) != len(shared.Stages) ||
			got.Promotions[0].URL != "https://git.example.com/rendered" {
			t.Errorf("%s: %s, %v", name, body, err)
		}
	}
}

// stopped has the first wave be merged, and red after that.
func stopped(s []promotion.Stage) {
	s[0].Known.Landed, s[0].InTrain = &status.Landed{Number: 7, URL: "https://git.example.com/avault/pulls/7"}, true
	s[0].LandedChecks = []pullrequest.Check{{Name: "avault-ci", State: pullrequest.CheckRed}}
}

// decided stores what is decided as the promoter does.
func (n *neighbours) decided(t *testing.T, shared promotion.Promotion, in promotion.Input, older bool) {
	t.Helper()
	branch := v1alpha1.BranchKey(shared.URL, shared.Branch)
	for i, v := range promotion.Decide(in) {
		s := in.Stages[i]
		err := n.store.ChangeGroup(t.Context(), branch+"\n"+s.Head, func(g *status.Group) bool {
			g.Head, g.State, g.Landed = s.Head, v.State, s.Known.Landed
			if g.Say(v.Told); older {
				g.Told = nil
			}
			return true
		})
		if err == nil && v.State == promotion.StageStopped {
			err = n.store.ChangeTrain(t.Context(), branch+"\nwave\ndev\nprod", func(train *status.Train) bool {
				train.Told = append(status.Plain(s.Name), v.Told.After(": ").Of(s.Head)...)
				train.Stopped = train.Told.String()
				if older {
					train.Told = nil
				}
				return true
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
