// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/server"
)

// TestStatusListsPreviews of a daemon that has some, and of one that is older and knows of none.
func TestStatusListsPreviews(t *testing.T) {
	old := false
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch r.URL.Path {
		case "/api/v1/catalog":
			answer = server.Catalog{}
		case "/api/v1/promotions":
			answer = server.Promotions{}
		case "/api/v1/previews":
			if old {
				http.NotFound(w, r)
				return
			}
			answer = server.Previews{Previews: []server.Preview{
				{Namespace: "team", Repository: "https://git.example.com/shop/config.git", Number: 7, Fork: true, Since: time.Now().Add(-3 * time.Hour), State: "Failed",
					Head: "0123456789abcdef", Message: "it\nwould\x1b fail"},
				{Repository: "https://git.example.com/shop/config.git", Number: 6, State: "Waiting"},
			}}
		default:
			answer = []server.Pipeline{{Name: "web", State: server.StateReady}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer daemon.Close()
	for _, old = range []bool{false, true} {
		code, out, stderr := prerig(t, "daemon", "status", "--server", daemon.URL, "--state", t.TempDir())
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		var rows []string
		for line := range strings.Lines(out) {
			if strings.Contains(line, "shop/config") {
				rows = append(rows, strings.Join(strings.Fields(line), " "))
			}
		}
		want := "7 of git.example.com/shop/config (fork) team Failed 3h ago 0123456789ab it would fail; 6 of git.example.com/shop/config - Waiting - -"
		if old {
			want = ""
		}
		if got := strings.Join(rows, "; "); got != want {
			t.Errorf("got  %s\nwant %s\n%s", got, want, out)
		}
	}
}
