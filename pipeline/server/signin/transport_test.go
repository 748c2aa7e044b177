// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// hostileProvider is a provider whose description is a map, and what else it answers. arrived counts what reaches
// another server.
func hostileProvider(t *testing.T, describe func(issuer, elsewhere string) map[string]string, answer http.HandlerFunc) (p *Provider, arrived *atomic.Int64) {
	t.Helper()
	arrived = &atomic.Int64{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		_, _ = io.WriteString(w, `{"keys": []}`)
	}))
	t.Cleanup(elsewhere.Close)
	var issuer *httptest.Server
	issuer = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/elsewhere":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case strings.HasSuffix(r.URL.Path, "/openid-configuration") && describe != nil:
			_ = json.NewEncoder(w).Encode(describe(issuer.URL, elsewhere.URL))
		default:
			answer(w, r)
		}
	}))
	t.Cleanup(issuer.Close)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Issuer: issuer.URL, ClientID: "prerig", ClientSecret: func() string { return "s3cret" }, CAFile: file, Session: time.Hour, ExternalURL: "https://p"})
	if err != nil {
		t.Fatal(err)
	}
	return p, arrived
}

// TestNothingGoesWhereTheProviderRedirects has endpoints that are on another server over plain http, or redirect to it:
// the code, the client's secret and tokens do not reach it.
func TestNothingGoesWhereTheProviderRedirects(t *testing.T) {
	for name, at := range map[string]func(issuer, elsewhere string) string{
		"a plain endpoint":   func(_, elsewhere string) string { return elsewhere },
		"a redirect":         func(issuer, _ string) string { return issuer + "/elsewhere" },
		"a redirect of port": func(issuer, _ string) string { return issuer + "/elsewhere?x=1" },
	} {
		t.Run(name, func(t *testing.T) {
			p, arrived := hostileProvider(t, func(issuer, elsewhere string) map[string]string {
				return map[string]string{"issuer": issuer, "authorization_endpoint": issuer, "token_endpoint": at(issuer, elsewhere),
					"userinfo_endpoint": at(issuer, elsewhere), "jwks_uri": at(issuer, elsewhere)}
			}, http.NotFound)
			found, err := p.discoverProviderOnce(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx := oidc.ClientContext(t.Context(), p.client)
			if _, err := p.exchangeCodeForSession(ctx, found, "code", attempt{}); err == nil {
				t.Error("the code was exchanged elsewhere")
			}
			if _, err := p.client.PostForm(found.Endpoint().TokenURL, url.Values{"code": {"x"}}); err == nil {
				t.Error("a form was sent elsewhere")
			}
			// Signed with a key that is not known, so that the keys are fetched.
			const token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.AAAA"
			if _, err := oidc.NewRemoteKeySet(ctx, at(p.o.Issuer, "http://127.0.0.1:1")).VerifySignature(ctx, token); err == nil {
				t.Error("a token was verified")
			}
			if arrived.Load() > 0 {
				t.Errorf("%d requests arrived elsewhere", arrived.Load())
			}
		})
	}
}

// TestTheProviderIsNotQuotedAndBounded has a description that is a refusal with a long text, and one without an end.
func TestTheProviderIsNotQuotedAndBounded(t *testing.T) {
	const marker = "INTERNAL-MARKER"
	p, _ := hostileProvider(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, strings.Repeat(marker, 10_000))
	})
	if _, err := p.discoverProviderOnce(t.Context()); err == nil || strings.Contains(err.Error(), marker) || len(err.Error()) > 500 {
		t.Errorf("got %.600v", err)
	}
	var sent atomic.Int64
	p, _ = hostileProvider(t, nil, func(w http.ResponseWriter, r *http.Request) {
		piece := []byte(strings.Repeat(" ", 64<<10))
		for sent.Load() < 1<<30 && r.Context().Err() == nil {
			n, err := w.Write(piece)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	if _, err := p.discoverProviderOnce(t.Context()); err == nil || sent.Load() > 64<<20 {
		t.Errorf("after %d bytes: %v", sent.Load(), err)
	}
}
