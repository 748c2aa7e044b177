// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestNothingOfOthersIsTold has two teams share a pull request, or waves, and one of them ask what goes on: it is told nothing of the
// other. Who may read both is told everything.
func TestNothingOfOthersIsTold(t *testing.T) {
	const (
		all   = "groupBy: All, head: prerig/shared, merge: WhenGreen"
		waves = "groupBy: Label, label: wave, waves: {order: [dev, prod]}"
	)
	open := &pullrequest.Request{Number: 1, State: pullrequest.StateOpen, HeadCommit: "c1"}
	red := []pullrequest.Check{{Name: "avault-ci", State: pullrequest.CheckRed}}
	for name, tc := range map[string]struct {
		other, own string
		stages     func(s []Stage)
		// full is part of what who may read all is told, part of what the team is told.
		full, part string
	}{
		"on hold": {all, all, func(s []Stage) { s[0].Waits, s[0].Request, s[0].OnHold = 2, open, "avault/coin" }, "avault/coin is on hold", "a pipeline of others is on hold"},
		"its own on hold": {all, all, func(s []Stage) { s[0].Waits, s[0].Request, s[0].OnHold = 2, open, "shop/web" }, "shop/web is on hold",
			"shop/web is on hold"},
		"after a group of others": {all + ", mergeWhen: {after: [{group: prerig/avault-first}]}", all, func(s []Stage) {
			s[0].Waits, s[0].Request, s[0].When.After = 2, open, []v1alpha1.After{{Group: "prerig/avault-first"}}
		}, "waits for the group prerig/avault-first, of", "waits for another group, of"},
		"after a group that it asks for": {all, all + ", mergeWhen: {after: [{group: prerig/first}]}", func(s []Stage) {
			s[0].Waits, s[0].Request, s[0].When.After = 2, open, []v1alpha1.After{{Group: "prerig/first"}}
		}, "waits for the group prerig/first, of", "waits for the group prerig/first, of"},
		"a wave before fails": {waves + ", head: avault-dev", waves, func(s []Stage) { s[1].Waits, s[0].Failing = 1, "avault/coin" },
			"waits for dev: avault/coin fails", "waits for dev: a pipeline of others fails"},
		"a wave before is stopped": {waves + ", head: avault-dev", waves, func(s []Stage) {
			s[1].Waits, s[0].Known.Landed, s[0].InTrain, s[0].LandedChecks = 1, &status.Landed{Number: 7, URL: "https://git.example.com/avault/pulls/7"}, true, red
		}, "dev is stopped: after the merge the status avault-ci is red", `"dev is stopped"`},
	} {
		p := newPromoterOf(t, map[string]string{"avault/coin": tc.other, "shop/web": tc.own}, map[string]string{"avault/coin": "dev", "shop/web": "prod"})
		units, groups := p.unitsAndGroups()
		if len(units) != 1 {
			t.Fatalf("%s: %d units", name, len(units))
		}
		s := &step{p: p, u: units[0], groups: groups}
		s.readKnownState()
		for i := range s.stages {
			s.stages[i].Busy, s.stages[i].HeadCommits = "", []string{"c1"}
		}
		tc.stages(s.stages)
		for i, g := range s.u.groups {
			if err := p.Store.ChangeGroup(t.Context(), g.key, func(k *status.Group) bool { k.Landed = s.stages[i].Known.Landed; return true }); err != nil {
				t.Fatal(err)
			}
		}
		verdicts := Decide(Input{Now: time.Now(), Waves: s.u.waves, Stages: s.stages})
		err := s.storeVerdicts(t.Context(), verdicts)
		if err == nil && s.u.waves != nil {
			err = s.moveTrain(t.Context(), verdicts)
		}
		if err == nil {
			err = p.Store.Sync(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := toldBy(t, p, "avault", "shop"); !strings.Contains(got, tc.full) {
			t.Errorf("%s: who may read all is told %s", name, got)
		}
		if got := toldBy(t, p, "shop"); strings.Contains(got, "avault") || !strings.Contains(got, tc.part) {
			t.Errorf("%s: the other team is told %s", name, got)
		}
		stopped := p.Store.Train(s.u.key).Stopped
		if got := toldBy(t, p, "shop"); stopped != "" && !strings.Contains(got, `"stopped":"dev"`) {
			t.Errorf("%s: stopped as %q, and the other team is told %s", name, stopped, got)
		}
	}
}

// toldBy is what somebody who may read pipelines of some namespaces is told.
func toldBy(t *testing.T, p *Promoter, namespaces ...string) string {
	t.Helper()
	told, err := json.Marshal(p.Promotions(func(pipeline string) bool {
		for _, one := range namespaces {
			if strings.HasPrefix(pipeline, one+"/") {
				return true
			}
		}
		return false
	}))
	if err != nil {
		t.Fatal(err)
	}
	return string(told)
}

// noRepositories tells which secret is missing.
type noRepositories struct{ publish.Repositories }

func (noRepositories) Repository(_ context.Context, namespace, _ string, _ *meta.LocalObjectReference) (*git.Mirror, *git.Remote, error) {
	return nil, nil, fmt.Errorf("reading secret %s/bot: it is not there", namespace)
}

// TestErrorsOfAMergeAreForWhoseSecretItIs has no secret for the merge.
func TestErrorsOfAMergeAreForWhoseSecretItIs(t *testing.T) {
	const all = "groupBy: All, head: prerig/shared, merge: WhenGreen"
	p := newPromoterOf(t, map[string]string{"avault/coin": all, "shop/web": all}, map[string]string{"avault/coin": "x", "shop/web": "x"})
	p.Targets = publish.NewTargets(noRepositories{}, nil, nil, tree.Limits{}, nil)
	units, groups := p.unitsAndGroups()
	s := &step{p: p, u: units[0], groups: groups}
	s.readKnownState()
	s.stages[0].Request = &pullrequest.Request{Number: 1, State: pullrequest.StateOpen, HeadCommit: "c1"}
	err := s.mergeStage(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), "avault") {
		t.Fatalf("got %v", err)
	}
	if err := p.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := toldBy(t, p, "shop"); strings.Contains(got, "avault") || !strings.Contains(got, `"the host does not merge it"`) {
		t.Errorf("of %q the other team is told %s", err, got)
	}
	if got := toldBy(t, p, "avault", "shop"); !strings.Contains(got, "the host does not merge it: ") {
		t.Errorf("of %q who may read all is told %s", err, got)
	}
}

// TestTextsOfOlderVersionsAreWithheld has a text that does not say which pipelines it names.
func TestTextsOfOlderVersionsAreWithheld(t *testing.T) {
	const waves = "groupBy: Label, label: wave, waves: {order: [dev, prod]}"
	p := newPromoterOf(t, map[string]string{"avault/coin": waves, "shop/web": waves}, map[string]string{"avault/coin": "dev", "shop/web": "prod"})
	units, _ := p.unitsAndGroups()
	u := units[0]
	err := p.Store.ChangeGroup(t.Context(), u.groups[1].key, func(g *status.Group) bool {
		g.State, g.Message = StageWaiting, "waits for dev: avault/coin fails"
		return true
	})
	if err == nil {
		err = p.Store.ChangeTrain(t.Context(), u.key, func(train *status.Train) bool { train.Stopped = "dev: avault/coin fails"; return true })
	}
	if err == nil {
		err = p.Store.Sync(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := toldBy(t, p, "shop"); strings.Contains(got, "avault") || strings.Count(got, withheld) != 2 {
		t.Errorf("the other team is told %s", got)
	}
	if got := toldBy(t, p, "avault", "shop"); strings.Count(got, "avault/coin fails") != 2 {
		t.Errorf("who may read all is told %s", got)
	}
}

// TestAWaveWithoutPipelinesIsToldToWhoMayReadAll has a wave whose pipelines are gone after its pull request was merged: why it is stopped, and
// where, is told to who may read all that there is.
func TestAWaveWithoutPipelinesIsToldToWhoMayReadAll(t *testing.T) {
	const waves = "groupBy: Label, label: wave, waves: {order: [dev, prod]}"
	p := newPromoterOf(t, map[string]string{"shop/web": waves, "avault/coin": waves}, map[string]string{"shop/web": "prod", "avault/coin": "prod"})
	units, groups := p.unitsAndGroups()
	if len(units) != 1 || len(groups) == 0 || len(units[0].groups) != 2 || len(units[0].groups[0].members) != 0 {
		t.Fatalf("units %+v", units)
	}
	landed := &status.Landed{Number: 7, URL: "https://git.example.com/pulls/7"}
	if err := p.Store.ChangeGroup(t.Context(), units[0].groups[0].key, func(k *status.Group) bool {
		k.State, k.Message, k.Landed = StageStopped, "after the merge the status ci is red", landed
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for pipelines, told := range map[string]bool{"": true, "shop/web": false} {
		stage := p.Promotions(func(pipeline string) bool { return pipelines == "" || pipeline == pipelines })[0].Stages[0]
		if stage.State != StageStopped || stage.Head == "" || (stage.Message != "") != told || (stage.URL == landed.URL) != told || (stage.Number == 7) != told {
			t.Errorf("who may read %q is told %+v", pipelines, stage)
		}
	}
}
