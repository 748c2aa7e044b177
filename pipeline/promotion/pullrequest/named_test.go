// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// TestAForkIsReadOnlyWhereTheCredentialsAreForIt: the author of a pull request chooses the fork, whose commit Bitbucket
// has in another repository.
func TestAForkIsReadOnlyWhereTheCredentialsAreForIt(t *testing.T) {
	for fork, want := range map[string]bool{
		"org/fork": true, "pay/app": false, "org/../pay/app": false, "org/fork/../../../../evil": false, "org%2f..%2fpay/app": false,
	} {
		var elsewhere []string
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.EscapedPath(), "/2.0/repositories/org/app/") && r.Header.Get("Authorization") != "" {
				elsewhere = append(elsewhere, r.URL.EscapedPath())
			}
			answer := recorded(t, "bitbucketcloud", nil)
			answer["source"].(map[string]any)["repository"] = map[string]any{"uuid": "{other}", "full_name": fork}
			answer["hash"] = headSHA
			_ = json.NewEncoder(w).Encode(answer)
		}))
		t.Cleanup(host.Close)
		c, err := pullrequest.OpenConversation(pullrequest.Options{
			Provider: "BitbucketCloud", Repository: "https://bitbucket.org/org/app.git", API: host.URL + "/2.0",
			Credentials: pullrequest.Credentials{Token: "s3cret"},
			IsFor: func(_ context.Context, url string) error {
				if strings.HasPrefix(url, host.URL+"/2.0/repositories/org/") {
					return nil
				}
				return errors.New("it is not for that")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Incoming(t.Context(), 2)
		if (len(elsewhere) > 0) != want || (err == nil) != want || err != nil && !strings.Contains(err.Error(), ".hosts") {
			t.Errorf("%s: asked with the credentials at %v, error %v", fork, elsewhere, err)
		}
	}
}
