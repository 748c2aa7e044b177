// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

func TestPagesSayWhatWaitsForPeople(t *testing.T) {
	publish := "  publish: [{git: {branch: rendered, pullRequest: {provider: Gitea, secretRef: {name: bot}}}}]\n"
	s := with(t, map[string]string{"web.yaml": fmt.Sprintf(object, "web", "web", publish)})
	e, _ := s.Catalog.Get("team/web")
	if e.Err != nil {
		t.Fatal(e.Err)
	}
	for _, c := range []struct{ state, url, want string }{
		{v1alpha1.PullRequestOpen, "https://git.example.com/config/pulls/7", `<a href="https://git.example.com/config/pulls/7" rel="noopener noreferrer">Pull request 7</a> waits for a merge, `},
		{v1alpha1.PullRequestClosed, "https://git.example.com/config/pulls/7", "was closed by a person"},
		{v1alpha1.PullRequestEdited, "javascript:alert(1)", "has commits of a person"},
	} {
		state, revision, err := s.Store.Load(t.Context(), "team/web")
		if err != nil {
			t.Fatal(err)
		}
		state.Ready(time.Now(), true, "Succeeded", "1 object", false)
		state.Add(status.Run{Run: v1alpha1.Run{ID: "r", Outcome: status.Published, Message: "1 object"}}, 3)
		state.Status.Published = []v1alpha1.Published{{Target: e.Pipeline.Spec.Publish[0].Target(), Revision: strings.Repeat("cd", 20), PullRequest: &v1alpha1.PullRequestStatus{
			Number: 7, URL: c.url, State: c.state, Head: "prerig/rendered/pipeline/team_web", Since: metav1.NewTime(time.Now().Add(-50 * time.Hour)), Message: hostile,
		}}}
		if _, err := s.Store.Save(t.Context(), "team/web", state, revision); err != nil {
			t.Fatal(err)
		}
		if err := s.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, page := range []string{"/", "/pipeline?name=team/web"} {
			_, body := get(t, s.Admin(Access{Loopback: true}), page)
			if !strings.Contains(body, c.want) || !strings.Contains(body, "2 days ago") || strings.Contains(body, "href=\"javascript:") || strings.Contains(body, hostile) {
				t.Errorf("%s, %s: got %s", page, c.state, body)
			}
		}
	}
}
