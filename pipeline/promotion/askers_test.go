// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

const sharedWaves = "groupBy: Label, label: wave, waves: {order: [dev, prod]}"

// A namespace whose token does not work is passed over for a while, and its failure is its own; a merge that others refuse is not tried
// again with the next token.
func TestBrokenCredentialsOfOneNamespaceStopNothingOfOthers(t *testing.T) {
	p := newPromoterOf(t, map[string]string{"evil/a": sharedWaves, "shop/b": sharedWaves, "shop/c": sharedWaves},
		map[string]string{"evil/a": "dev", "shop/b": "dev", "shop/c": "dev"})
	now := time.Now()
	p.Now = func() time.Time { return now }
	units, _ := p.unitsAndGroups()
	g := units[0].groups[0]
	var asked []string
	refuse := map[string]error{}
	ask := func() error {
		asked = nil
		return p.withMemberCredentials(t.Context(), g, func(a asker) error {
			asked = append(asked, a.namespace)
			return refuse[a.namespace]
		})
	}
	is := func(what string, err error, failed bool, want ...string) {
		t.Helper()
		if (err != nil) != failed || !slices.Equal(asked, want) {
			t.Errorf("%s: %v, asked with the credentials of %v, want %v", what, err, asked, want)
		}
	}
	is("all is well", ask(), false, "evil")
	for _, broken := range []error{
		errors.New("reading secret evil/bot: it is not there"), &pullrequest.Error{Status: http.StatusUnauthorized}, &pullrequest.Error{Status: http.StatusForbidden},
		&pullrequest.Error{Status: http.StatusNotFound}, &pullrequest.Error{Status: http.StatusTooManyRequests, Temporary: true, Wait: time.Minute},
	} {
		refuse["evil"] = broken
		is("a broken credential", ask(), false, "evil", "shop")
		is("at once after that", ask(), false, "shop")
		now = now.Add(time.Hour)
		delete(refuse, "evil")
		is("when it is mended", ask(), false, "evil")
	}
	refuse["evil"], refuse["shop"] = errors.New("evil's"), errors.New("shop's")
	err := ask()
	is("all are broken", err, true, "evil", "shop")
	if told := g.resultTextForMember(err, "text", "other"); told[0].Pipeline != "evil/a" {
		t.Errorf("the failure is told as one of %s", told[0].Pipeline)
	}
	is("all are broken still", ask(), true, "evil", "shop")
	now = now.Add(time.Hour)
	for _, final := range []error{errNotNow, pullrequest.ErrNotOpen, &pullrequest.Error{Status: http.StatusConflict}, &pullrequest.Error{Status: http.StatusBadGateway}} {
		refuse["evil"] = final
		is("a refusal that has nothing to do with credentials", ask(), true, "evil")
	}
}

// What a pipeline of another namespace cannot read or write stops no waves; a result that is wrong does, and so does one's own failure.
func TestWavesStopForWhatIsInThem(t *testing.T) {
	for name, tc := range map[string]struct {
		other, reason string
		stops         bool
	}{
		"another namespace cannot publish":          {"evil/a", v1alpha1.ReasonPublishFailed, false},
		"another namespace cannot read its source":  {"evil/a", v1alpha1.ReasonSourceFailed, false},
		"another namespace renders nothing":         {"evil/a", v1alpha1.ReasonBuildFailed, true},
		"another namespace is refused by its gates": {"evil/a", v1alpha1.ReasonGateClosed, true},
		"one's own cannot publish":                  {"shop/a", v1alpha1.ReasonPublishFailed, true},
	} {
		p := newPromoterOf(t, map[string]string{tc.other: sharedWaves, "shop/c": sharedWaves}, map[string]string{tc.other: "dev", "shop/c": "prod"})
		state, revision, err := p.Store.Load(t.Context(), tc.other)
		if err != nil {
			t.Fatal(err)
		}
		state.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: tc.reason}}
		if _, err := p.Store.Save(t.Context(), tc.other, state, revision); err != nil {
			t.Fatal(err)
		}
		if err := p.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		units, _ := p.unitsAndGroups()
		if s := units[0].groups[0].knownStage(status.Group{}, nil, time.Now()); (s.Failing != "") != tc.stops {
			t.Errorf("%s: the wave is failing by %q", name, s.Failing)
		}
	}
}
