// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// TestDeliveriesOfEmptyElementsTakeNoMemory: 3 MB of empty elements took 340 MB in the daemon, for each delivery that was read.
func TestDeliveriesOfEmptyElementsTakeNoMemory(t *testing.T) {
	list := func(text string) []byte {
		return []byte(strings.Replace(text, "LIST", strings.Repeat("{},", 500_000)+"{}", 1))
	}
	push := list(`{"ref":"refs/heads/main","commits":[LIST],"repository":{"clone_url":"https://git.example.com/a.git"}}`)
	form := http.Header{"X-Github-Event": {"push"}, "Content-Type": {"application/x-www-form-urlencoded"}}
	for _, one := range []struct {
		provider Provider
		header   http.Header
		body     []byte
	}{
		{BitbucketServer, http.Header{"X-Event-Key": {"repo:refs_changed"}}, list(`{"changes":[LIST]}`)},
		{BitbucketCloud, http.Header{"X-Event-Key": {"repo:push"}}, list(`{"push":{"changes":[LIST]}}`)},
		{Distribution, nil, list(`{"events":[LIST]}`)},
		{Harbor, nil, list(`{"type":"PUSH_ARTIFACT","event_data":{"resources":[LIST]}}`)},
		{AzureDevOps, nil, list(`{"eventType":"git.push","resource":{"refUpdates":[LIST]}}`)},
		{GitHub, http.Header{"X-Github-Event": {"push"}}, push},
		{GitHub, form, []byte("payload=" + url.QueryEscape(string(push)))},
	} {
		header := one.header
		if header == nil {
			header = http.Header{}
		}
		_, err := Receiver{Name: "a", Provider: one.provider, Insecure: true}.Read(header, "", one.body, time.Now())
		if err == nil || !strings.Contains(err.Error(), "lists of empty elements") {
			t.Errorf("%s: %v", one.provider, err)
		}
	}
}

// TestTheLongestDeliveriesAreRead: a push has up to 2,048 commits, each of which lists its files.
func TestTheLongestDeliveriesAreRead(t *testing.T) {
	commit := `{"id":"` + strings.Repeat("a", 40) + `","message":"m","added":["apps/a.yaml","apps/b.yaml"],"removed":[],"modified":["apps/c.yaml"]}`
	commits := bytes.Repeat([]byte(commit+","), 2047)
	body := []byte(`{"ref":"refs/heads/main","commits":[` + string(commits) + commit + `],"repository":{"clone_url":"https://git.example.com/a.git"}}`)
	e, err := Receiver{Name: "a", Provider: GitHub, Insecure: true}.Read(http.Header{"X-Github-Event": {"push"}}, "", body, time.Now())
	if err != nil || len(e.Changes) != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	if budget.CheckElements(body, 8000) == nil {
		t.Error("it is no long delivery")
	}
}
