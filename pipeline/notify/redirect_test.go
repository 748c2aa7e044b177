// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// TestARedirectedNotificationGoesOnlyWhereItMay has a server redirect to other paths of itself. Each is requested only
// if the secret is for it, and if the tenant may have notifications sent there.
func TestARedirectedNotificationGoesOnlyWhereItMay(t *testing.T) {
	for name, c := range map[string]struct {
		to, hosts, reach string
		flux, want       bool
	}{
		"within both":                      {to: "/api/v1/repositories/7/x", hosts: "/api/*", reach: "/api/*", want: true},
		"outside of the secret's":          {to: "/evil/x", hosts: "/api/*", reach: "/*"},
		"outside of the tenant's":          {to: "/evil/x", hosts: "/*", reach: "/api/*"},
		"by a path with dots":              {to: "/api/../evil/x", hosts: "/api/*", reach: "/*"},
		"by an encoded path":               {to: "/api/%2e%2e/evil/x", hosts: "/api/*", reach: "/*"},
		"a signature outside of the hosts": {to: "/evil/x", hosts: "/api/*", reach: "/*", flux: true},
		"a signature within":               {to: "/api/x", hosts: "/api/*", reach: "/*", flux: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var arrived atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/api/v1/repos/org/apps/") || r.URL.Path == "/api/hook" {
					w.Header().Set("Location", c.to)
					w.WriteHeader(http.StatusPermanentRedirect)
					return
				}
				arrived.Add(1)
			}))
			defer s.Close()
			dir := t.TempDir()
			for key, value := range map[string]string{"token": "tok", secret.KeyHosts: s.URL + c.hosts} {
				if err := os.MkdirAll(filepath.Join(dir, "team", "host"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "team", "host", key), []byte(value), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			pattern, err := giturl.ParsePattern(s.URL + c.reach)
			if err != nil {
				t.Fatal(err)
			}
			ctx := egress.WithReach(t.Context(), egress.Reach{Allowed: []giturl.Pattern{pattern}, Whose: "pipelines in team", Setting: "the tenant's notifications"})
			to := v1alpha1.Notification{CommitStatus: &v1alpha1.CommitStatus{Provider: "Gitea", URL: s.URL + "/api/v1", SecretRef: *ref("host")}}
			if c.flux {
				to = v1alpha1.Notification{FluxReceiver: &v1alpha1.Endpoint{URL: s.URL + "/api/hook", SecretRef: ref("host")}}
			}
			run := published
			run.Changed, run.SourceURL = true, "https://git.example/org/apps.git"
			sender := New(secret.Dir{Path: dir}, nil)
			err = sender.Send(ctx, []v1alpha1.Notification{to}, run)
			if (err == nil) != c.want || (arrived.Load() == 1) != c.want {
				t.Errorf("%d requests arrived, error %v", arrived.Load(), err)
			}
			if err != nil && strings.Contains(err.Error(), "evil") {
				t.Errorf("the error tells where the redirect leads: %v", err)
			}
		})
	}
}
