// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// TestPipelinesThatAreGone has a pipeline of which only a state is left, and a file that cannot be read.
func TestPipelinesThatAreGone(t *testing.T) {
	s := fixture(t)
	s.Keeper = &prune.Keeper{Catalog: s.Catalog, Store: s.Store, Queue: s.Queue, MaxShare: 50, Log: s.Log}
	save(t, s.Store, "team/gone"+hostile, status.Published, "done", false)
	for range 2 { // marked, and then due
		if err := s.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Keeper.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h := s.Admin(Access{Loopback: true})
	if _, body := get(t, h, "/"); !strings.Contains(body, "Deleted pipelines with published files") || !strings.Contains(body, "broken.yaml is not valid") ||
		!strings.Contains(body, "prerig daemon remove") || strings.Contains(withoutScript(body), "<script") {
		t.Errorf("the page:\n%s", body)
	}
	_, body := get(t, h, "/api/v1/catalog")
	var c Catalog
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatal(err)
	}
	if c.Pipelines != 2 || c.Invalid != 1 || len(c.Removals) != 1 || c.Removals[0].State != prune.Held || c.Removals[0].Policy != "Orphan" {
		t.Errorf("%+v", c)
	}
	for text, want := range map[string]int{
		`{"pipelines": ["team/web"]}`: 404, `{"pipelines": []}`: 400, `{"everything": true}`: 400, `{"all": true, "orphan": true}`: 200,
	} {
		response, body := get(t, h, "/api/v1/remove", func(r *http.Request) {
			r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(text))
			r.Header.Set("Authorization", "Bearer "+token)
		})
		if response.StatusCode != want {
			t.Errorf("%s: %s: %s", text, response.Status, body)
		}
	}
	if depth, err := s.Queue.Depth(t.Context(), nil); err != nil || depth.Jobs != 1 {
		t.Errorf("%d jobs, %v", depth.Jobs, err)
	}
	if response, _ := get(t, h, "/api/v1/remove", func(r *http.Request) { r.Method = http.MethodPost }); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", response.Status)
	}
	if err := s.Store.AddRemoved(t.Context(), status.Removed{Pipeline: "team/gone", At: time.Now(), Message: "left as it is"}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, body := get(t, h, "/api/v1/catalog"); !strings.Contains(body, "left as it is") {
		t.Errorf("the removed ones: %s", body)
	}
}
