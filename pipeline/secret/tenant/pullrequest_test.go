// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// TestReachOfPullRequests keeps a pipeline from having tokens sent to a server that it may not publish to.
func TestReachOfPullRequests(t *testing.T) {
	reach, err := tenant.NewReach(nil, []string{"https://git.example.com/*", "https://api.example.com/v1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{"": true, "https://git.example.com/api/v1": true, "https://api.example.com/v1": true, "https://evil.example.com/api/v1": false} {
		to := &v1alpha1.GitPublish{URL: "https://git.example.com/org/deploy", Branch: "prod", PullRequest: &v1alpha1.PullRequest{URL: url}}
		err := reach.Check(&v1alpha1.RenderPipeline{Spec: v1alpha1.RenderPipelineSpec{Publish: []v1alpha1.Publish{{Git: to}}}}, "the team")
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "spec.publish[0].git.pullRequest.url: the team may not open pull requests at it") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
