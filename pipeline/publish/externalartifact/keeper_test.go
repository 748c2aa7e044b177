// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

var web = Ref{"shop", "web"}

func newKeeper(t *testing.T, objects ...runtime.Object) (*Keeper, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{Resource: "ExternalArtifactList"}, objects...)
	k, err := Open(Options{Dir: filepath.Join(t.TempDir(), "artifacts"), URL: "http://prerig.example/", Grace: time.Minute, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k, client
}

func put(t *testing.T, k *Keeper, content string) (before Current, digest string) {
	t.Helper()
	before, digest, err := k.Put(t.Context(), web, Wanted{Pipeline: "shop/web", Archive: []byte(content), Objects: []string{"v1 ConfigMap shop/" + content}, SourceRevision: "main@sha1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return before, digest
}

// read asks the server for what the object names, as Flux does.
func read(t *testing.T, k *Keeper) (status int, content string) {
	t.Helper()
	now, err := k.objects.get(t.Context(), web)
	if err != nil || now == nil || now.artifact == nil {
		t.Fatalf("the object is %v: %v", now, err)
	}
	return get(k, http.MethodGet, strings.TrimPrefix(now.artifact.URL, "http://prerig.example"))
}

func get(k *Keeper, method, path string) (int, string) {
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(method, "http://prerig.example/", nil)
	request.URL.Path = path
	k.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func TestPutAndRead(t *testing.T) {
	k, _ := newKeeper(t)
	if before, _ := put(t, k, "one"); before.Digest != "" {
		t.Errorf("before the first there was %+v", before)
	}
	now, err := k.objects.get(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	if a := now.artifact; *a.Size != 3 || a.Revision != "latest@"+a.Digest || a.Metadata[metadataRevision] != "main@sha1:1" || !now.isReady() {
		t.Errorf("the artifact is %+v", a)
	}
	if code, content := read(t, k); code != http.StatusOK || content != "one" {
		t.Errorf("got %d %q", code, content)
	}
	before, digest := put(t, k, "two")
	if string(before.Archive) != "one" || before.Objects[0] != "v1 ConfigMap shop/one" {
		t.Errorf("before the second there was %+v", before)
	}
	if code, content := read(t, k); code != http.StatusOK || content != "two" {
		t.Errorf("got %d %q", code, content)
	}
	if text, err := k.Drift(t.Context(), web, digest); text != "" || err != nil {
		t.Errorf("drift %q %v", text, err)
	}
}

// TestEqualContentWritesNothing looks at the requests that reach the API server.
func TestEqualContentWritesNothing(t *testing.T) {
	k, client := newKeeper(t)
	put(t, k, "one")
	client.ClearActions()
	put(t, k, "one")
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("an equal artifact was written: %s", action.GetVerb())
		}
	}
}

// TestKilledBetweenTheFileAndTheObject has each request to the API server fail once, as if the process had ended there.
func TestKilledBetweenTheFileAndTheObject(t *testing.T) {
	for _, verb := range []string{"get", "create", "update"} {
		t.Run(verb, func(t *testing.T) {
			k, client := newKeeper(t)
			if verb == "update" {
				put(t, k, "one")
			}
			failed := false
			client.PrependReactor(verb, "externalartifacts", func(clienttesting.Action) (bool, runtime.Object, error) {
				defer func() { failed = true }()
				return !failed, nil, apierrors.NewInternalError(errors.New("killed"))
			})
			w := Wanted{Pipeline: "shop/web", Archive: []byte("two")}
			if _, _, err := k.Put(t.Context(), web, w); err == nil {
				t.Fatal("it has not failed")
			}
			if verb == "update" {
				if _, content := read(t, k); content != "one" {
					t.Errorf("the object names %q", content)
				}
			}
			if _, _, err := k.Put(t.Context(), web, w); err != nil {
				t.Fatal(err)
			}
			if _, content := read(t, k); content != "two" {
				t.Errorf("after it was tried again the object names %q", content)
			}
		})
	}
}

func TestDamageIsSeenAndMended(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"damaged": func(path string) error { return os.WriteFile(path, []byte("odd"), 0o600) },
		"cut off": func(path string) error { return os.Truncate(path, 1) },
		"gone":    os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			k, _ := newKeeper(t)
			_, digest := put(t, k, "one")
			path, _ := pathOf(web, []byte("one"))
			if err := damage(filepath.Join(k.options.Dir, path)); err != nil {
				t.Fatal(err)
			}
			if text, err := k.Drift(t.Context(), web, digest); err != nil || !strings.Contains(text, map[string]string{"gone": "is missing"}[name]) || text == "" {
				t.Errorf("drift %q %v", text, err)
			}
			var lost []string
			k.options.Lost = func(_ context.Context, _ Ref, pipeline string) { lost = append(lost, pipeline) }
			k.Tidy(t.Context(), time.Now())
			if len(lost) != 1 || lost[0] != "shop/web" {
				t.Errorf("lost are %q", lost)
			}
			if now, err := k.Find(t.Context(), web, "shop/web"); err != nil || now.Archive != nil || now.Digest != digest || len(now.Objects) != 1 {
				t.Errorf("found %+v %v", now, err)
			}
			put(t, k, "one")
			if _, content := read(t, k); content != "one" {
				t.Errorf("it was not mended: %q", content)
			}
			if k.Tidy(t.Context(), time.Now()); len(lost) != 1 {
				t.Errorf("what is mended is lost: %q", lost)
			}
		})
	}
}

// TestAFullDiskLeavesWhatIsThere writes into a directory that takes no more files.
func TestAFullDiskLeavesWhatIsThere(t *testing.T) {
	k, _ := newKeeper(t)
	put(t, k, "one")
	path, _ := pathOf(web, []byte("two"))
	// A directory where the unfinished file is to be fails its writing for everybody, root included.
	unfinished := filepath.Join(k.options.Dir, filepath.Dir(path), unfinishedPrefix+filepath.Base(path))
	if err := os.MkdirAll(filepath.Join(unfinished, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Put(t.Context(), web, Wanted{Pipeline: "shop/web", Archive: []byte("two")}); err == nil || !strings.Contains(err.Error(), "keeping the artifact") {
		t.Fatalf("it has not failed: %v", err)
	}
	if code, content := read(t, k); code != http.StatusOK || content != "one" {
		t.Errorf("the object names %d %q", code, content)
	}
}

func TestOthersObjectsAreRefused(t *testing.T) {
	foreign := func(change func(o *unstructured.Unstructured)) *unstructured.Unstructured {
		o := newObject(web, "shop/web")
		change(o)
		return o
	}
	for name, o := range map[string]*unstructured.Unstructured{
		"another tool's":     foreign(func(o *unstructured.Unstructured) { o.SetAnnotations(nil); o.SetLabels(nil) }),
		"without our label":  foreign(func(o *unstructured.Unstructured) { o.SetLabels(nil) }),
		"another pipeline's": newObject(web, "shop/other"),
	} {
		t.Run(name, func(t *testing.T) {
			k, client := newKeeper(t, o)
			if _, _, err := k.Put(t.Context(), web, Wanted{Pipeline: "shop/web", Archive: []byte("one")}); !errors.Is(err, ErrNotOwned) {
				t.Errorf("writing: %v", err)
			}
			if now, err := k.Find(t.Context(), web, "shop/web"); err != nil || !errors.Is(now.Refused, ErrNotOwned) {
				t.Errorf("looking: %+v %v", now, err)
			}
			if _, found, err := k.Remove(t.Context(), web, "shop/web"); found || err != nil {
				t.Errorf("removing: %v %v", found, err)
			}
			for _, action := range client.Actions() {
				if action.GetVerb() != "get" {
					t.Errorf("there was a request to %s", action.GetVerb())
				}
			}
		})
	}
	k, _ := newKeeper(t, newObject(web, "shop/other"))
	if _, _, err := k.Put(t.Context(), web, Wanted{Pipeline: "shop/web", Predecessors: []string{"shop/other"}, Archive: []byte("one")}); err != nil {
		t.Fatalf("what a pipeline has left that is gone: %v", err)
	}
	if now, err := k.objects.get(t.Context(), web); err != nil || now.pipeline != "shop/web" {
		t.Errorf("it belongs to %v, %v", now, err)
	}
}

func TestGateClosesBeforeAnythingIsWritten(t *testing.T) {
	k, _ := newKeeper(t)
	put(t, k, "one")
	closed := errors.New("closed")
	_, _, err := k.Put(t.Context(), web, Wanted{Pipeline: "shop/web", Archive: []byte("two"), Gate: func(now Current) error {
		if string(now.Archive) != "one" {
			t.Errorf("the gate is asked with %+v", now)
		}
		return closed
	}})
	if !errors.Is(err, closed) {
		t.Fatal(err)
	}
	if files, err := k.archives.filesOfObject(web); len(files) != 1 || err != nil {
		t.Errorf("there are %v %v", files, err)
	}
}

func TestOlderArchivesStayForTheirTime(t *testing.T) {
	k, client := newKeeper(t)
	put(t, k, "one")
	put(t, k, "two")
	old, _ := pathOf(web, []byte("one"))
	start := time.Now()
	k.Tidy(t.Context(), start)
	k.Tidy(t.Context(), start.Add(59*time.Second))
	if code, _ := get(k, http.MethodGet, "/"+old); code != http.StatusOK {
		t.Errorf("within its time it was answered with %d", code)
	}
	unreachable := true
	client.PrependReactor("get", "externalartifacts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return unreachable, nil, apierrors.NewServiceUnavailable("away")
	})
	k.Tidy(t.Context(), start.Add(time.Hour))
	if code, _ := get(k, http.MethodGet, "/"+old); code != http.StatusOK {
		t.Errorf("while the API server was away it was removed: %d", code)
	}
	unreachable = false
	put(t, k, "one") // as a source that is reverted
	k.Tidy(t.Context(), start.Add(time.Hour))
	if code, content := read(t, k); code != http.StatusOK || content != "one" {
		t.Errorf("what is current again was removed: %d", code)
	}
	put(t, k, "two")
	k.Tidy(t.Context(), start.Add(2*time.Hour))
	k.Tidy(t.Context(), start.Add(3*time.Hour))
	if code, _ := get(k, http.MethodGet, "/"+old); code != http.StatusNotFound {
		t.Errorf("after its time it was answered with %d", code)
	}
	for _, content := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		put(t, k, content)
	}
	if files, err := k.archives.filesOfObject(web); len(files) != maxOlder+1 || err != nil {
		t.Errorf("%d files are kept: %v", len(files), err)
	}
}

func TestRemoved(t *testing.T) {
	k, _ := newKeeper(t)
	put(t, k, "one")
	before, found, err := k.Remove(t.Context(), web, "shop/web")
	if err != nil || !found || string(before.Archive) != "one" {
		t.Fatalf("removed %+v %v %v", before, found, err)
	}
	path, digest := pathOf(web, []byte("one"))
	k.options.Lost = func(context.Context, Ref, string) { t.Error("what was removed is said to be lost") }
	if text, _ := k.Drift(t.Context(), web, digest); !strings.Contains(text, "was deleted") {
		t.Errorf("drift %q", text)
	}
	start := time.Now()
	k.Tidy(t.Context(), start)
	k.Tidy(t.Context(), start.Add(time.Hour))
	if code, _ := get(k, http.MethodGet, "/"+path); code != http.StatusNotFound {
		t.Errorf("its file is left: %d", code)
	}
	if _, err := os.Stat(filepath.Join(k.options.Dir, "shop/web")); !os.IsNotExist(err) {
		t.Errorf("its directory is left: %v", err)
	}
}

// TestNothingElseIsServed tries to get at other files than archives.
func TestNothingElseIsServed(t *testing.T) {
	k, _ := newKeeper(t)
	put(t, k, "one")
	path, _ := pathOf(web, []byte("one"))
	outside := filepath.Join(filepath.Dir(k.options.Dir), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := strings.Repeat("a", 64)
	if err := os.Symlink(outside, filepath.Join(k.options.Dir, "shop/web", linked+archiveEnding)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(k.options.Dir, "shop/web", strings.Repeat("b", 64)+archiveEnding), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{
		"/", "", "/shop", "/shop/", "/shop/web", "/shop/web/", "/../secret", "/shop/web/../../../secret", "/shop/web/" + linked + archiveEnding,
		"/shop/web/" + strings.Repeat("b", 64) + archiveEnding, "//" + path, "/" + path + "/", "/" + path + "\x00", "/shop/../" + path, "/" + strings.ToUpper(path),
		"/shop/web/" + unfinishedPrefix + filepath.Base(path),
	} {
		if code, content := get(k, http.MethodGet, at); code != http.StatusNotFound {
			t.Errorf("%q was answered with %d %q", at, code, content)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, "PROPFIND"} {
		if code, _ := get(k, method, "/"+path); code != http.StatusMethodNotAllowed {
			t.Errorf("%s was answered with %d", method, code)
		}
	}
	if code, content := get(k, http.MethodHead, "/"+path); code != http.StatusOK || content != "" {
		t.Errorf("HEAD was answered with %d %q", code, content)
	}
}

// TestAClusterWithoutFlux answers as an API server does for a kind that it does not have.
func TestAClusterWithoutFlux(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "404 page not found\n")
	}))
	t.Cleanup(server.Close)
	k, _ := newKeeper(t)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	k.objects.client = client
	if _, _, err := k.Put(context.Background(), web, Wanted{Pipeline: "shop/web", Archive: []byte("one")}); !errors.Is(err, ErrNoKind) {
		t.Errorf("got %v", err)
	}
}

// TestAnObjectThatSomebodyChangesMeanwhile must not be overwritten.
func TestAnObjectThatSomebodyChangesMeanwhile(t *testing.T) {
	k, client := newKeeper(t)
	put(t, k, "one")
	client.PrependReactor("update", "externalartifacts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(Resource.GroupResource(), "web", errors.New("changed"))
	})
	if _, _, err := k.Put(t.Context(), web, Wanted{Pipeline: "shop/web", Archive: []byte("two")}); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if _, content := read(t, k); content != "one" {
		t.Errorf("the object names %q", content)
	}
	if now, _ := client.Resource(Resource).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{}); now == nil {
		t.Error("the object is gone")
	}
}
