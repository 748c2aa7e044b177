// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// appServer gives tokens of an installation to whoever signs with the key.
type appServer struct {
	t       *testing.T
	key     *rsa.PublicKey
	life    time.Duration
	now     func() time.Time // nil for time.Now
	tokens  atomic.Int64
	refusal string
}

// tokenStep is a request some time after the one before, and how many tokens were issued by then.
type tokenStep struct {
	after  time.Duration
	tokens int64
}

func (s *appServer) clock() time.Time {
	if s.now == nil {
		return time.Now()
	}
	return s.now()
}

func (s *appServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	auth := r.Header.Get("Authorization")
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v3/repos/org/app/installation":
		s.verify(auth)
		_, _ = io.WriteString(w, `{"id": 77, "account": {"login": "org"}, "permissions": {"pull_requests": "write"}}`)
	case "POST /api/v3/app/installations/77/access_tokens":
		s.verify(auth)
		if s.refusal != "" {
			http.Error(w, s.refusal, http.StatusUnauthorized)
			return
		}
		sent, _ := io.ReadAll(r.Body)
		if string(sent) != `{"repositories":["app"]}` {
			s.t.Errorf("a token for %s", sent)
		}
		s.tokens.Add(1)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": "ghs_installation", "expires_at": s.clock().Add(s.life).UTC().Format(time.RFC3339), "repository_selection": "selected"})
	case "GET /api/v3/repos/org/app/pulls":
		if auth != "Bearer ghs_installation" {
			s.t.Errorf("Authorization is %q", auth)
		}
		_, _ = io.WriteString(w, `[]`)
	default:
		s.t.Errorf("asked %s %s", r.Method, r.URL)
	}
}

func (s *appServer) verify(authorization string) {
	parts := strings.Split(strings.TrimPrefix(authorization, "Bearer "), ".")
	if len(parts) != 3 {
		s.t.Errorf("%q is no JSON Web Token", authorization)
		return
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		s.t.Error(err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(s.key, crypto.SHA256, sum[:], signature); err != nil {
		s.t.Error(err)
	}
	data, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
		At     int64  `json:"iat"`
		End    int64  `json:"exp"`
	}
	if err := json.Unmarshal(data, &claims); err != nil {
		s.t.Error(err)
	}
	// GitHub refuses tokens for more than ten minutes.
	now := s.clock().Unix()
	if claims.Issuer != "Iv23li" || claims.At > now || claims.End < now || claims.End > now+600 {
		s.t.Errorf("the claims are %+v", claims)
	}
}

func TestGitHubApp(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string][]byte{
		"PKCS #1": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"PKCS #8": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}
	opened := func(t *testing.T, s *appServer, app pullrequest.App) pullrequest.Host {
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		return open(t, pullrequest.Options{Repository: "https://github.example.com/org/app", API: server.URL + "/api/v3", Credentials: pullrequest.Credentials{App: &app}})
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			s := &appServer{t: t, key: &key.PublicKey, life: time.Hour}
			h := opened(t, s, pullrequest.App{ID: "Iv23li", Key: form})
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if _, err := h.Find(context.Background(), "a", "b"); err != nil {
						t.Error(err)
					}
				})
			}
			if all.Wait(); s.tokens.Load() != 1 {
				t.Errorf("%d tokens for as many as one", s.tokens.Load())
			}
		})
	}
	for name, c := range map[string]struct {
		life  time.Duration
		steps []tokenStep
	}{
		"a token that ends soon is used for a minute": {4 * time.Minute,
			[]tokenStep{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {0, 2}, {time.Minute, 3}}},
		"a token is renewed five minutes before its end": {time.Hour, []tokenStep{{0, 1}, {54 * time.Minute, 1}, {time.Minute, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			s := &appServer{t: t, key: &key.PublicKey, life: c.life, now: func() time.Time { return now }}
			server := httptest.NewServer(s)
			defer server.Close()
			app := pullrequest.App{ID: "Iv23li", Installation: 77, Key: forms["PKCS #1"]}
			h := pullrequest.OpenGitHubApp(server.URL+"/api/v3", "org/app", app, s.now)
			for _, step := range c.steps {
				now = now.Add(step.after)
				if _, err := h.Find(context.Background(), "a", "b"); err != nil {
					t.Error(err)
				}
				if got := s.tokens.Load(); got != step.tokens {
					t.Errorf("%d tokens after %s more, want %d", got, step.after, step.tokens)
				}
			}
		})
	}
	t.Run("what is refused says who and what", func(t *testing.T) {
		s := &appServer{t: t, key: &key.PublicKey, refusal: `{"message": "A JSON web token could not be decoded"}`}
		_, err := opened(t, s, pullrequest.App{ID: "Iv23li", Installation: 77, Key: forms["PKCS #1"]}).Find(context.Background(), "a", "b")
		if err == nil || !strings.HasPrefix(err.Error(), "getting a token of the GitHub App of org/app at 127.0.0.1") || !strings.Contains(err.Error(), "could not be decoded") {
			t.Errorf("got %v", err)
		}
		for problem, key := range map[string]string{"not in PEM form": "s3cret", "no RSA key": "-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----\n"} {
			_, err := opened(t, s, pullrequest.App{ID: "Iv23li", Installation: 77, Key: []byte(key)}).Find(context.Background(), "a", "b")
			if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: got %v", problem, err)
			}
		}
	})
}
