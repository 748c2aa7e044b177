// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// askedFor stores a rollback of a pipeline that was refused since, and returns it as it was asked for.
func askedFor(t *testing.T, p *Promoter, pipeline string) status.Rollback {
	t.Helper()
	e, _ := p.Catalog.Get(pipeline)
	r := status.Rollback{
		ID: "r1", Pipeline: pipeline, Target: e.Pipeline.Spec.Publish[0].Target(), Pipelines: []string{pipeline}, Commit: "c1",
		At: time.Now(), By: "ann", State: status.RollbackAsked,
	}
	err := p.Store.ChangeRollback(t.Context(), r.ID, func(stored *status.Rollback) bool {
		*stored = r
		stored.State, stored.Message = status.RollbackRefused, "it was promoted"
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holdOf is the hold of a pipeline as it is stored.
func holdOf(t *testing.T, p *Promoter, pipeline string) (hold *status.OnHold) {
	t.Helper()
	err := p.Store.ChangeControl(t.Context(), pipeline, func(c *status.Control) bool { hold = c.OnHold; return false })
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// TestARefusedRollbackEndsAHoldThatIsNotKnownYet has the process not see its own hold before it ends it.
func TestARefusedRollbackEndsAHoldThatIsNotKnownYet(t *testing.T) {
	p := newPromoter(t, "groupBy: Label, label: wave", map[string]string{"a": "x"})
	r := askedFor(t, p, "a")
	behind, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	var once sync.Once
	p.Store.OnChange(func(string) { once.Do(func() { close(behind); <-goOn }) })
	if err := p.Hold(t.Context(), []string{"other"}, "ann", ""); err != nil {
		t.Fatal(err)
	}
	select {
	case <-behind:
	case <-time.After(3 * time.Minute):
		t.Fatal("nothing is known of another hold")
	}
	done, err := p.rollbacks().execute(t.Context(), r)
	if err != nil || done.State != status.RollbackRefused || done.Message != "it was promoted" {
		t.Fatalf("got %+v, %v", done, err)
	}
	if p.Store.Control("a").OnHold != nil {
		t.Fatal("the process knows of the hold")
	}
	if hold := holdOf(t, p, "a"); hold != nil {
		t.Errorf("it stays on hold: %+v", hold)
	}
}

// TestAHoldOfARefusedRollbackEndsAfterACrash dies between the hold and its end.
func TestAHoldOfARefusedRollbackEndsAfterACrash(t *testing.T) {
	p := newPromoter(t, "groupBy: Label, label: wave", map[string]string{"a": "x"})
	if err := p.rollbacks().holdPipelines(t.Context(), askedFor(t, p, "a")); err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Sync(t.Context()); err != nil || !errors.Is(p.Store.CheckHold("a"), status.ErrOnHold) {
		t.Fatalf("it is not on hold: %v", err)
	}
	p.FinishRollbacks(t.Context())
	if hold := holdOf(t, p, "a"); hold != nil {
		t.Errorf("it stays on hold: %+v", hold)
	}
}
