// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

// TestHoldIsShownUntilItIsReleased puts a pipeline on hold and promotes it, twice.
func TestHoldIsShownUntilItIsReleased(t *testing.T) {
	n := newNeighbours(t)
	web := func() Pipeline {
		t.Helper()
		_, body := n.ask(t, "reader", "/api/v1/pipelines?pipeline=shop/web", "")
		var found []Pipeline
		if err := json.Unmarshal([]byte(body), &found); err != nil {
			t.Fatal(err)
		}
		return found[0]
	}
	for range 2 {
		if code, body := n.ask(t, "operator", "/api/v1/hold", `{"pipelines": ["shop/web"], "reason": "it leaks"}`); code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		if got := web(); got.State != StateSuspended || got.OnHold == nil || got.OnHold.By != "operator" || !strings.Contains(got.Message, "it leaks; prerig daemon promote") {
			t.Errorf("got %+v, %+v", got, got.OnHold)
		}
		if code, body := n.ask(t, "operator", "/api/v1/promote", `{"pipelines": ["shop/web"]}`); code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		if got := web(); got.State == StateSuspended || got.OnHold != nil || got.OpenRequest == "" {
			t.Errorf("after it was promoted: %+v", got)
		}
	}
}

// TestRollbacksOfOthersAreNotShown has one that changed pipelines of two namespaces.
func TestRollbacksOfOthersAreNotShown(t *testing.T) {
	n := newNeighbours(t)
	for _, r := range []status.Rollback{
		{ID: "own", Pipeline: "shop/web", Pipelines: []string{"shop/web"}, State: status.RollbackDone, At: time.Now()},
		{ID: "both", Pipeline: "shop/web", Pipelines: []string{"shop/web", "vault/coin"}, State: status.RollbackDone, At: time.Now()},
	} {
		if err := n.store.ChangeRollback(t.Context(), r.ID, func(stored *status.Rollback) bool { *stored = r; return true }); err != nil {
			t.Fatal(err)
		}
	}
	for who, want := range map[string]int{"reader": 1, "auditor": 2} {
		_, body := n.ask(t, who, "/api/v1/promotions", "")
		var got Promotions
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Rollbacks) != want || want == 1 && strings.Contains(body, "vault") {
			t.Errorf("%s: %s, %v", who, body, err)
		}
	}
}

// TestRolesAreAskedForPipelinesThatAreNotThere has one that is not valid any more and one that is gone.
func TestRolesAreAskedForPipelinesThatAreNotThere(t *testing.T) {
	may := mayOperate(access.Principal{Grants: []access.Grant{{Role: access.Operate, Namespaces: []string{"shop"}}}})
	for name, want := range map[string]error{"vault/badsafe": errNotYours, "vault/gone": errNotYours, "shop/gone": nil} {
		if err := may(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
