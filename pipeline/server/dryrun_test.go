// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"strings"
	"testing"
)

// TestADryRunChangesNothing has every request that changes something be one for a dry run: it answers with what it would
// do, or that it cannot, and the state of the pipeline stays as it is.
func TestADryRunChangesNothing(t *testing.T) {
	n := newNeighbours(t)
	if code, body := n.ask(t, "operator", "/api/v1/hold", `{"pipelines": ["shop/web"], "reason": "it leaks"}`); code != http.StatusOK {
		t.Fatal(code, body)
	}
	if err := n.store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		who, path, body string
		code            int
		want            string
	}{
		{"operator", "/api/v1/promote", `{"pipelines": ["shop/web"], "dryRun": true}`, http.StatusOK, `"released":["shop/web"]`},
		{"operator", "/api/v1/promote", `{"pipelines": ["pay/web"], "dryRun": true}`, http.StatusNotFound, ""},
		{"reader", "/api/v1/promote", `{"pipelines": ["shop/web"], "dryRun": true}`, http.StatusForbidden, ""},
		{"operator", "/api/v1/reconcile", `{"pipelines": ["shop/web"], "dryRun": true}`, http.StatusBadRequest, "force"},
		{"operator", "/api/v1/hold", `{"pipelines": ["shop/web"], "dryRun": true}`, http.StatusBadRequest, "no dry run"},
		{"operator", "/api/v1/suspend", `{"pipelines": ["shop/web"], "suspended": true, "dryRun": true}`, http.StatusBadRequest, "no dry run"},
		{"administrator", "/api/v1/remove", `{"pipelines": ["shop/gone"], "dryRun": true}`, http.StatusOK, `"pipeline":"shop/gone"`},
		{"administrator", "/api/v1/remove", `{"pipelines": ["shop/gone"], "orphan": true, "dryRun": true}`, http.StatusOK, `"policy":"Orphan"`},
		{"administrator", "/api/v1/remove", `{"pipelines": ["shop/web"], "dryRun": true}`, http.StatusNotFound, ""},
		{"operator", "/api/v1/remove", `{"pipelines": ["shop/gone"], "dryRun": true}`, http.StatusForbidden, ""},
	} {
		before := n.store.Control("shop/web")
		registered, _ := n.store.Registration("shop/gone")
		code, body := n.ask(t, one.who, one.path, one.body)
		text := strings.Join(strings.Fields(body), "")
		if code != one.code || !strings.Contains(text, strings.Join(strings.Fields(one.want), "")) {
			t.Errorf("%s %s %s: %d %s", one.who, one.path, one.body, code, body)
		}
		after := n.store.Control("shop/web")
		if after.Suspended != before.Suspended || (after.OnHold == nil) != (before.OnHold == nil) || after.RequestedAt != before.RequestedAt {
			t.Errorf("%s %s: the state was %+v, and is %+v", one.path, one.body, before, after)
		}
		still, ok := n.store.Registration("shop/gone")
		if !ok || still.Policy != registered.Policy || still.Removal.Approved {
			t.Errorf("%s %s: the removal is %+v", one.path, one.body, still)
		}
	}
}
