// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/verify"
	"github.com/prerig/prerig/pipeline/verify/watch"
)

// server answers lists of pods as an API server does, and has no object of any other kind.
type server struct {
	mu    sync.Mutex
	image string
	fail  bool
}

func (s *server) set(image string, fail bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.image, s.fail = image, fail
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.fail:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`)
	case strings.HasSuffix(r.URL.Path, "/namespaces/shop/pods"):
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{map[string]any{
			"metadata": map[string]any{"name": "web", "namespace": "shop"},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": s.image}}},
		}}})
	default:
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
	}
}

func pod(image string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: app, image: \"" + image + "\"}]}\n"
}

// TestLook tells what is found once, and again only when it is something else or nobody heard it.
func TestLook(t *testing.T) {
	api := &server{image: "a:1"}
	cluster := httptest.NewServer(api)
	t.Cleanup(func() { cluster.CloseClientConnections(); cluster.Close() })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: x, context: {cluster: c}}], current-context: x}`, cluster.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	hosts := gittest.New(t)
	repository := hosts.Repository(t, "config")
	repository.Commit("one", map[string]string{"out/web.yaml": pod("a:1")})
	store := git.NewStore(t.TempDir(), git.DefaultLimits())

	var told []int
	var refuse error
	w := watch.New(watch.Cluster{
		Name: "prod", Kubeconfig: kubeconfig, Ref: "refs/heads/main", Paths: []string{"out"}, Interval: time.Hour,
		Open: func(context.Context) (*git.Mirror, *git.Remote, error) {
			remote, err := git.NewRemote(repository.URL, nil, nil)
			if err != nil {
				return nil, nil, err
			}
			mirror, err := store.Mirror(repository.URL)
			return mirror, remote, err
		},
		Changed: func(_ context.Context, found watch.Found) error {
			if refuse == nil {
				told = append(told, found.Wrong)
			}
			return refuse
		},
	}, slog.New(slog.DiscardHandler))
	look := func(state verify.State, wrong, tellings int) {
		t.Helper()
		w.Look(t.Context())
		found := w.Found()
		if found.Err != nil || found.Report == nil {
			t.Fatalf("looking: %v", found.Err)
		}
		if found.Report.Counts[state] != 1 || found.Wrong != wrong || len(told) != tellings {
			t.Fatalf("found %v, %d wrong, told %v; want one %s, %d wrong, told %d times", found.Report.Counts, found.Wrong, told, state, wrong, tellings)
		}
	}
	look(verify.Current, 0, 1) // who was told of something wrong before a restart hears that nothing is
	look(verify.Current, 0, 1)
	api.set("b:1", false)
	refuse = errors.New("nobody listens")
	look(verify.Changed, 1, 1)
	refuse = nil
	look(verify.Changed, 1, 2)
	look(verify.Changed, 1, 2)

	api.set("", true)
	w.Look(t.Context())
	if found := w.Found(); found.Err == nil || found.Report != nil {
		t.Errorf("a cluster that does not answer gave %+v", found)
	}

	// Each commit is fetched without those before it, and the ones of earlier looks are still known.
	api.set("a:1", false)
	repository.Commit("two", map[string]string{"out/web.yaml": pod("a:2")})
	look(verify.Older, 0, 3)
	repository.Commit("three", map[string]string{"out/web.yaml": pod("a:3")})
	look(verify.Older, 0, 3)
	if commit := w.Found().Report.Pods[0].Commit; commit.Subject != "one" || commit.Behind != 2 {
		t.Errorf("the pod is of %+v", commit)
	}

	// Nor is a namespace without a pod.
	repository.Commit("elsewhere", map[string]string{"out/web.yaml": strings.Replace(pod("a:3"), ", namespace: shop", "", 1)})
	w.Look(t.Context())
	if found := w.Found(); found.Err == nil || found.Report != nil || !strings.Contains(found.Err.Error(), "no pod in default") {
		t.Errorf("a namespace without a pod gave %+v", found)
	}

	// Files without a workload are no proof that all is well.
	repository.Commit("four", map[string]string{"out/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n"})
	w.Look(t.Context())
	if found := w.Found(); found.Err == nil || found.Report != nil {
		t.Errorf("files without a workload gave %+v", found)
	}
}
