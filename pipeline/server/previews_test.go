// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// TestPreviewsAreShownToWhoMayKnow of their pipelines, by the API and on the page.
func TestPreviewsAreShownToWhoMayKnow(t *testing.T) {
	n := newNeighbours(t)
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	for _, one := range []status.Preview{
		{Namespace: "shop", Repository: "https://git.example.com/shop/config.git", Number: 7, URL: "https://git.example.com/shop/config/pulls/7", Since: at, Wanted: at},
		{Namespace: "shop", Repository: "https://git.example.com/shop/config.git", Number: 9, Since: at, Ended: at, Fork: true, Failed: true, Head: "0123456789abcdef", Message: "<b>it would fail</b>"},
		{Namespace: "vault", Repository: "https://git.example.com/vault/config.git", Number: 8, Since: at, Ended: at},
	} {
		if err := n.store.ChangePreview(t.Context(), one.Key(), func(*status.Preview) *status.Preview { return &one }); err != nil {
			t.Fatal(err)
		}
	}
	for who, want := range map[string]string{"reader": "9 Failed true, 7 Waiting false", "auditor": "9 Failed true, 7 Waiting false, 8 Succeeded false"} {
		_, body := n.ask(t, who, "/api/v1/previews", "")
		var got Previews
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, p := range got.Previews {
			if !p.Since.Equal(at) {
				t.Errorf("%d is known since %s", p.Number, p.Since)
			}
			words = append(words, fmt.Sprint(p.Number, " ", p.State, " ", p.Fork))
		}
		if text := strings.Join(words, ", "); text != want || who == "reader" && strings.Contains(body, "vault") {
			t.Errorf("%s: got %q, want %q", who, text, want)
		}
	}
	_, page := n.ask(t, "reader", "/pull-requests", "")
	for _, want := range []string{"https://git.example.com/shop/config/pulls/7", "Pull request 9", "from a fork", "&lt;b&gt;it would fail"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if strings.Contains(page, "vault") {
		t.Error("the page shows previews of others")
	}
}
