// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/charttest"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// neighbours is a server with the chart repositories of two teams, /shop and /pay, which need credentials, and a place
// for all, /public.
type neighbours struct {
	*httptest.Server
	mu      sync.Mutex
	asked   map[string]bool // paths, and whether credentials came with it
	index   string          // of /shop
	content []byte
	to      string // where /shop/moved.tgz leads
}

func newNeighbours(t *testing.T) *neighbours {
	t.Helper()
	n := &neighbours{asked: map[string]bool{}, content: charttest.Package(t, "webapp", "9.0.0", nil), index: "apiVersion: v1\nentries: {}\n"}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		_, _, with := r.BasicAuth()
		n.asked[r.URL.Path] = n.asked[r.URL.Path] || with
		switch {
		case !with && !strings.HasPrefix(r.URL.Path, "/public/"):
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/index.yaml"):
			_, _ = w.Write([]byte(n.index))
		case r.URL.Path == "/shop/moved.tgz":
			http.Redirect(w, r, n.to, http.StatusFound)
		default:
			_, _ = w.Write(n.content)
		}
	}))
	t.Cleanup(n.Close)
	return n
}

// fetch fetches what a lock of the pipelines of shop names.
func (n *neighbours) fetch(t *testing.T, url string, sources ...string) error {
	t.Helper()
	secrets := t.TempDir()
	for name, content := range map[string]string{"username": "shop", "password": "x", secret.KeyHosts: n.URL + "/shop/*\n" + n.URL + "/shop\n"} {
		at := filepath.Join(secrets, "shop", "charts", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var allowed []giturl.Pattern
	for _, text := range sources {
		pattern, err := giturl.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, pattern)
	}
	rules, err := egress.NewRules([]string{"127.0.0.0/8"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := chart.New(chart.Options{StateDir: t.TempDir(), Secrets: secret.Dir{Path: secrets, RequireHosts: true}, Dialer: egress.NewDialer(rules), Sources: allowed})
	repository := v1alpha1.ChartRepository{URL: n.URL + "/shop", SecretRef: &meta.LocalObjectReference{Name: "charts"}}
	locked := v1alpha1.LockedChart{Name: "webapp", Repository: repository.URL, Version: "9.0.0", Digest: charttest.Digest(n.content), URL: url}
	_, err = f.Archive(t.Context(), "shop", repository, locked)
	return err
}

// TestALockReachesNoOtherRepositoryOfTheServer: whoever writes the source writes the lock, and the credentials are the
// pipeline's.
func TestALockReachesNoOtherRepositoryOfTheServer(t *testing.T) {
	for _, path := range []string{
		"/pay/webapp-9.tgz", "/shop/../pay/webapp-9.tgz", "/shop/%2e%2e/pay/webapp-9.tgz", "/shop/..%2fpay/webapp-9.tgz", "/shop/..%5cpay/webapp-9.tgz",
		"/shop/%252e%252e/pay/webapp-9.tgz", "/shop//../pay/x.tgz", "/shopping/webapp-9.tgz", "/SHOP/webapp-9.tgz", "/", "/shop/./webapp-9.tgz", "/shop/..;/pay/x.tgz",
	} {
		n := newNeighbours(t)
		err := n.fetch(t, n.URL+path)
		if err == nil || !chart.IsPermanent(err) || strings.Contains(err.Error(), "404 (") || strings.Contains(err.Error(), "sha256") {
			t.Errorf("%s: got %v", path, err)
		}
		for asked := range n.asked {
			if asked != "/shop/index.yaml" {
				t.Errorf("%s: %s was asked for", path, asked)
			}
		}
	}
}

// TestCredentialsGoWhereTheyAreForOnly: to URLs that the index names, and to those that the server leads to, too.
func TestCredentialsGoWhereTheyAreForOnly(t *testing.T) {
	for name, test := range map[string]struct {
		at, to, want string
		with         bool // credentials for the last URL
		sources      []string
	}{
		"below":                          {at: "/shop/webapp-9.tgz", with: true},
		"of the index, elsewhere":        {at: "/public/webapp-9.tgz"},
		"of the index, of another team":  {at: "/pay/webapp-9.tgz", want: "401"},
		"a redirect below":               {at: "/shop/moved.tgz", to: "/shop/webapp-9.tgz", with: true},
		"a redirect to another team":     {at: "/shop/moved.tgz", to: "/pay/webapp-9.tgz", want: "401"},
		"a redirect to all":              {at: "/shop/moved.tgz", to: "/public/webapp-9.tgz"},
		"a redirect that is not allowed": {at: "/shop/moved.tgz", to: "/public/webapp-9.tgz", sources: []string{"/shop/*"}, want: "egress.sources"},
		"an index that is not allowed":   {at: "/public/webapp-9.tgz", sources: []string{"/shop/*"}, want: "egress.sources"},
		"a redirect that is allowed":     {at: "/shop/moved.tgz", to: "/public/webapp-9.tgz", sources: []string{"/shop/*", "/public/*"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNeighbours(t)
			n.index, n.to = "apiVersion: v1\nentries: {webapp: [{version: 9.0.0, urls: ["+n.URL+test.at+"]}]}\n", test.to
			var sources []string
			for _, path := range test.sources {
				sources = append(sources, n.URL+path)
			}
			err := n.fetch(t, n.URL+test.at, sources...)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			last := test.at
			if test.to != "" {
				last = test.to
			}
			if n.asked[last] != test.with {
				t.Errorf("credentials for %s: %t", last, n.asked[last])
			}
		})
	}
}

// TestAWrongDigestIsNotTold: with it, whoever writes the lock could have what is there rendered.
func TestAWrongDigestIsNotTold(t *testing.T) {
	repository := charttest.New(t)
	content := charttest.Package(t, "web", "1.0.0", nil)
	repository.Add("web", "1.0.0", content)
	locked := v1alpha1.LockedChart{Name: "web", Repository: repository.URL, Version: "1.0.0", Digest: charttest.Digest(nil)}
	chosen, err := chart.New(chart.Options{StateDir: t.TempDir()}).Choose(t.Context(), "", from(repository.URL), "web", "")
	if err != nil {
		t.Fatal(err)
	}
	locked.URL = chosen.URL
	_, err = chart.New(chart.Options{StateDir: t.TempDir()}).Archive(t.Context(), "", from(repository.URL), locked)
	if err == nil || strings.Contains(err.Error(), charttest.Digest(content)) || !strings.Contains(err.Error(), locked.Digest) {
		t.Errorf("got %v", err)
	}
}

// TestNamesOfChartsStayBelowTheRegistrysURL: a name with dots would be another team's repository.
func TestNamesOfChartsStayBelowTheRegistrysURL(t *testing.T) {
	asked := 0
	host := charttest.Registry(t, func(http.ResponseWriter, *http.Request) bool { asked++; return false })
	for _, name := range []string{"../pay/webapp", "x/../../pay/webapp", "./webapp", "a//webapp", "..", ""} {
		locked := v1alpha1.LockedChart{Name: name, Repository: "oci://" + host + "/shop", Version: "1.0.0", Digest: charttest.Digest(nil)}
		_, err := chart.New(chart.Options{StateDir: t.TempDir()}).Archive(t.Context(), "", from("oci://"+host+"/shop"), locked)
		if err == nil || !chart.IsPermanent(err) || asked != 0 {
			t.Errorf("%q: got %v, and %d requests", name, err, asked)
		}
	}
}
