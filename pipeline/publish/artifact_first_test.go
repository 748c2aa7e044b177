// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// tokenRegistry is a registry without the repository rendered/shop, which it keeps as secret as one that others must not read. A token
// tells what it allows.
type tokenRegistry struct {
	next http.Handler
	url  string
	// madeByToken has the repository be there when a token for a push is given, as Quay does, and else when something is pushed.
	madeByToken bool
	// readers get no token for a push.
	readers bool
	mu      sync.Mutex
	there   bool
	logins  []string
}

func (s *tokenRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.answers(w, r) {
		return
	}
	s.next.ServeHTTP(w, r)
}

// answers gives tokens, and refuses what a token does not allow.
func (s *tokenRegistry) answers(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/token" {
		allowed, scopes := "pull", strings.Join(r.URL.Query()["scope"], " ")
		s.logins = append(s.logins, scopes)
		if strings.Contains(scopes, "push") && !s.readers {
			allowed = "push"
			s.there = s.there || s.madeByToken
		}
		fmt.Fprintf(w, `{"token": %q}`, allowed)
		return true
	}
	token, writes := r.Header.Get("Authorization"), r.Method != http.MethodGet && r.Method != http.MethodHead
	pushes := token == "Bearer push"
	if token == "" || writes && !pushes || !s.there && !pushes {
		actions := map[bool]string{false: "pull", true: "pull,push"}[writes]
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x",scope="repository:rendered/shop:%s"`, s.url, actions))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	s.there = s.there || writes
	return false
}

func startTokenRegistry(t *testing.T) (*tokenRegistry, *publish.Artifact) {
	t.Helper()
	s := &tokenRegistry{next: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	secret := map[string][]byte{oci.KeyUsername: []byte("u"), oci.KeyPassword: []byte("p")}
	r, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/rendered/shop", secret, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, &publish.Artifact{Registry: r, Tags: []string{"latest", "prod"}}
}

func TestFirstArtifactOfARepository(t *testing.T) {
	for name, madeByToken := range map[string]bool{"as Quay": true, "as Docker Hub": false} {
		for _, signed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, signed %t", name, signed), func(t *testing.T) {
				s, a := startTokenRegistry(t)
				s.madeByToken = madeByToken
				if signed {
					secret, _ := cosignKey(t)
					a.Signer = signer(t, secret)
				}
				c := change(t, "apps/shop", "shop", configMap("a", "1"))
				first, err := a.Publish(ctx, c)
				if err != nil || !first.Changed || first.Before != "" {
					t.Fatalf("got %+v, %v", first, err)
				}
				// What is published is read without a word about a push.
				s.readers, s.logins = true, nil
				again, err := a.Publish(ctx, c)
				if err != nil || again.Changed || again.Digest != first.Digest || strings.Contains(fmt.Sprint(s.logins), "push") {
					t.Errorf("got %+v, %v, with logins for %q", again, err, s.logins)
				}
			})
		}
	}
}

// A repository that may not be read is none that is empty.
func TestRefusedArtifactIsNotPublishedOver(t *testing.T) {
	s, a := startTokenRegistry(t)
	s.readers = true
	if result, err := a.Publish(ctx, change(t, "apps/shop", "shop", configMap("a", "1"))); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %+v, %v", result, err)
	}
	// What only looks asks for no more than it needs, and makes no repository.
	s.madeByToken, s.readers, s.logins = true, false, nil
	if _, err := publish.PublishedArtifact(ctx, a.Registry, "latest"); err == nil || s.there || strings.Contains(fmt.Sprint(s.logins), "push") {
		t.Errorf("got %v, with logins for %q", err, s.logins)
	}
}
