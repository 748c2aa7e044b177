// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func inVersion(name, version string) *unstructured.Unstructured {
	o := newPipeline(name, "Orphan", false)
	o.SetResourceVersion(version)
	return o
}

// madeBefore is another object of the same name.
func madeBefore(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetUID("of-before")
	return o
}

// TestBrokenUntilCaughtUp has an API server that answers again while the informers have not seen yet what has changed meanwhile.
func TestBrokenUntilCaughtUp(t *testing.T) {
	for name, tc := range map[string]struct {
		known   []*unstructured.Unstructured
		catchUp func(w *Watcher)
	}{
		"an object is new": {nil, func(w *Watcher) { w.storeObject(pipelines, inVersion("web", "7")) }},
		"an object is another one": {
			[]*unstructured.Unstructured{inVersion("web", "6")},
			func(w *Watcher) { w.storeObject(pipelines, inVersion("web", "7")) },
		},
		"an object is made anew": {
			[]*unstructured.Unstructured{madeBefore(inVersion("web", "9"))},
			func(w *Watcher) { w.storeObject(pipelines, inVersion("web", "7")) },
		},
		"an object is changed once more": {
			[]*unstructured.Unstructured{inVersion("web", "6")},
			func(w *Watcher) { w.storeObject(pipelines, inVersion("web", "10")) },
		},
		"an object is gone": {
			[]*unstructured.Unstructured{inVersion("web", "7"), inVersion("old", "3")},
			func(w *Watcher) {
				w.forgetDeletedObject(pipelines, cache.DeletedFinalStateUnknown{Key: "shop/old", Obj: inVersion("old", "3")})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := newTestReporter(inVersion("web", "7"))
				w := r.Watcher
				for _, one := range tc.known {
					w.storeObject(pipelines, one)
				}
				w.setProblem(errors.New("connection refused"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go w.pollForRecovery(ctx)
				time.Sleep(10 * mendEvery)
				if _, err := w.Pipelines(); err == nil {
					t.Error("what was there before the error is taken for what is there now")
				}
				tc.catchUp(w)
				time.Sleep(2 * mendEvery)
				if all, err := w.Pipelines(); err != nil || len(all) != 1 {
					t.Errorf("after the informers have caught up: %v, %v", all, err)
				}
			})
		})
	}
}

// TestMeshIsReadInPages has more nodes than are asked for at once, of which the last one has the oldest kubelet. It needs a server, as the
// client that client-go has for tests drops what pages are asked for by.
func TestMeshIsReadInPages(t *testing.T) {
	const nodes = 2*pageSize + 1
	pages := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: []unstructured.Unstructured{}}
		if strings.HasSuffix(r.URL.Path, "/nodes") {
			pages++
			limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
			from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
			if limit <= 0 || limit > pageSize {
				t.Errorf("so many are asked for at once: %d", limit)
			}
			for i := from; i < min(nodes, from+limit); i++ {
				page.Items = append(page.Items, nodeOf(i, i == nodes-1))
			}
			if next := from + len(page.Items); next < nodes {
				page.SetContinue(strconv.Itoa(next))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	m := &Mesh{client: &Client{dynamic: client}, namespaces: []string{"istio-system"}, log: slog.New(slog.DiscardHandler), changed: make(chan struct{}, 1)}
	if err := m.listAndAdopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	objects, _, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	oldest := false
	for _, one := range objects {
		version, _, _ := unstructured.NestedString(one.Value, "status", "nodeInfo", "kubeletVersion")
		oldest = oldest || version == "v1.35.1"
	}
	if len(objects) != nodes || pages != 3 || !oldest {
		t.Errorf("%d objects were read in %d pages; the last is among them: %v", len(objects), pages, oldest)
	}
}

func nodeOf(i int, old bool) unstructured.Unstructured {
	version := "v1.36.3"
	if old {
		version = "v1.35.1"
	}
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": fmt.Sprint("node-", i)},
		"status": map[string]any{"nodeInfo": map[string]any{"kubeletVersion": version}},
	}}
}
