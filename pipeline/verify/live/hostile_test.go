// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// configOf returns the connection to a server, as a kubeconfig has it.
func configOf(t *testing.T, url string) *rest.Config {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q}}]\n"+
		"contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", url)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Config(name, "")
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// TestListsOfAClusterEnd has an API server whose lists go on for ever, or take more memory than a list has.
func TestListsOfAClusterEnd(t *testing.T) {
	for kind, want := range map[string]string{
		"same": "goes on without an end", "new": "lists more than 1000000", "expired": "too old", "empty": "lists of more than",
	} {
		t.Run(kind, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				asked++
				list := func(next, items string) {
					fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, next, items)
				}
				switch {
				case asked > 100_000:
					http.Error(w, "asked too often", http.StatusTeapot)
				case kind == "same":
					list("again", `{"metadata":{"name":"p"}}`)
				case kind == "new":
					list(fmt.Sprint(asked), "")
				case kind == "expired" && r.URL.Query().Get("continue") != "":
					w.WriteHeader(http.StatusGone)
					fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}`)
				case kind == "expired":
					list(fmt.Sprint(asked), `{"metadata":{"name":"p"}}`)
				default:
					list("", strings.Repeat(`{},`, 2<<20)+"{}")
				}
			}))
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			began := time.Now()
			_, err := List(t.Context(), configOf(t, server.URL), Resources[:1], nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("after %d requests: %v", asked, err)
			}
			t.Logf("%d requests in %s", asked, time.Since(began))
		})
	}
}

// TestMain has the memory of a daemon from package deploy.
func TestMain(m *testing.M) {
	debug.SetMemoryLimit(1 << 30)
	os.Exit(m.Run())
}

// TestAnswersOfAClusterCountTogether: the answers to the lists of one comparison have 60 MB each, and some hundred MB together.
func TestAnswersOfAClusterCountTogether(t *testing.T) {
	item := `{"metadata":{"name":"p","annotations":{"a":"` + strings.Repeat("x", 1<<20) + `"}}}`
	var asked, sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		n, _ := fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{"continue":"%d"},"items":[%s{}]}`, asked.Add(1), strings.Repeat(item+",", 60))
		sent.Add(int64(n))
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, err := List(t.Context(), configOf(t, server.URL), Resources, nil)
	if err == nil || !strings.Contains(err.Error(), "larger than such answers are") || sent.Load() > 600<<20 {
		t.Errorf("after %d MB: %v", sent.Load()>>20, err)
	}
}
