// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// marker is what a server says that nobody may learn through the daemon.
const marker = "INTERNAL-MARKER-AKIA"

// questions are what is asked of a registry.
var questions = map[string]func(r *oci.Registry, t *testing.T) error{
	"resolve": func(r *oci.Registry, t *testing.T) error {
		_, err := r.Resolve(t.Context(), oci.Ref{Tag: "latest"})
		return err
	},
	"pull": func(r *oci.Registry, t *testing.T) error {
		_, err := r.Pull(t.Context(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits())
		return err
	},
	"push": func(r *oci.Registry, t *testing.T) error {
		return remote.Write(r.Repository.Tag("latest"), empty.Image, r.Options(remote.WithContext(t.Context()), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))...)
	},
}

func TestAnswersOfRegistriesAreNotQuoted(t *testing.T) {
	for _, status := range []int{200, 400, 401, 403, 404, 405, 418} {
		for name, body := range map[string]string{
			"text":         marker,
			"a page":       "<h1>" + marker + "</h1>",
			"an error":     fmt.Sprintf(`{"errors": [{"code": "DENIED", "message": %q, "detail": {"a": %q}}]}`, marker, marker),
			"another code": fmt.Sprintf(`{"errors": [{"code": %q, "message": "x"}]}`, marker),
			"a token":      fmt.Sprintf(`{"details": %q}`, marker),
		} {
			for where, ping := range map[string]bool{"everywhere": false, "after the first": true, "for the token": true} {
				var server *httptest.Server
				server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if ping && r.URL.Path == "/v2/" {
						if where == "for the token" {
							w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, server.URL))
							w.WriteHeader(http.StatusUnauthorized)
						}
						return
					}
					w.WriteHeader(status)
					_, _ = io.WriteString(w, body)
				}))
				registry, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/r", nil, true, nil)
				if err != nil {
					t.Fatal(err)
				}
				for question, ask := range questions {
					err := ask(registry, t)
					if err != nil && strings.Contains(err.Error(), marker) || err == nil && question != "push" {
						t.Errorf("%d, %s, %s, %s: got %v", status, name, where, question, err)
					}
				}
				server.Close()
			}
		}
	}
}

// What a registry's code means is told, as that is what a user needs.
func TestCodesOfRegistriesAreExplained(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"errors": [{"code": "NAME_UNKNOWN", "message": "x"}]}`)
		}
	}))
	defer server.Close()
	registry, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/r", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := questions["pull"](registry, t); err == nil || !strings.HasSuffix(err.Error(), "NAME_UNKNOWN: the registry does not have the repository") {
		t.Errorf("got %v", err)
	}
}

// Neither the address of a registry, nor that of its token service, nor that of a store which it redirects to may be one that is
// refused. Addresses in a URL are refused by the library already.
func TestRefusedAddressIsNoRegistry(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	rules, err := egress.NewRules(nil, []string{"127.0.0.1", "::1"})
	if err != nil {
		t.Fatal(err)
	}
	for where, answer := range map[string]http.HandlerFunc{
		"token": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Www-Authenticate", `Bearer realm="http://localhost:`+port+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				http.Redirect(w, r, "http://localhost:"+port+"/x", http.StatusTemporaryRedirect)
			}
		},
		"itself": nil,
	} {
		host := "localhost:" + port
		if answer != nil {
			listener, err := net.Listen("tcp", "127.0.0.2:0")
			if err != nil {
				t.Skipf("this machine has no second address of its own: %v", err)
			}
			server := httptest.NewUnstartedServer(answer)
			server.Listener.Close()
			server.Listener = listener
			server.Start()
			defer server.Close()
			host = listener.Addr().String()
		}
		registry, err := oci.Connect("oci://"+host+"/r", nil, true, egress.NewDialer(rules))
		if err != nil {
			t.Fatal(err)
		}
		for question, ask := range questions {
			if err := ask(registry, t); !egress.IsRefused(err) {
				t.Errorf("%s, %s: got %v", where, question, err)
			}
		}
	}
}
