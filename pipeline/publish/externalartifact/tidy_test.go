// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// modify changes the object as somebody with kubectl would.
func modify(t *testing.T, client *dynamicfake.FakeDynamicClient, change func(o *unstructured.Unstructured)) {
	t.Helper()
	at := client.Resource(Resource).Namespace(web.Namespace)
	o, err := at.Get(t.Context(), web.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(o)
	if _, err := at.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestWhatAnObjectOfAnotherNamesStays has somebody take our label off an object that Flux still reads.
func TestWhatAnObjectOfAnotherNamesStays(t *testing.T) {
	k, client := newKeeper(t)
	_, digest := put(t, k, "one")
	modify(t, client, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{managedByLabel: "Helm"}) })
	k.options.Lost = func(_ context.Context, _ Ref, pipeline string) {
		t.Errorf("the pipeline %q is asked to publish again", pipeline)
	}
	start := time.Now()
	k.Tidy(t.Context(), start)
	k.Tidy(t.Context(), start.Add(time.Hour))
	if code, content := read(t, k); code != http.StatusOK || content != "one" {
		t.Errorf("what the object names is answered with %d %q", code, content)
	}
	if text, err := k.Drift(t.Context(), web, digest); err != nil || !strings.Contains(text, "belongs to Prerig") {
		t.Errorf("drift %q %v", text, err)
	}
}

// TestAnArchiveOfAnotherObjectIsNotBelieved has the status name the file of another object, and another revision.
func TestAnArchiveOfAnotherObjectIsNotBelieved(t *testing.T) {
	k, client := newKeeper(t)
	_, digest := put(t, k, "one")
	if _, _, err := k.Put(t.Context(), Ref{"bank", "web"}, Wanted{Pipeline: "bank/web", Archive: []byte("secret")}); err != nil {
		t.Fatal(err)
	}
	_, of := pathOf(Ref{"bank", "web"}, []byte("secret"))
	for name, artifact := range map[string][3]string{
		"path":          {pathFor(Ref{"bank", "web"}, of), digest, revisionOf(digest)},
		"path, digest":  {pathFor(Ref{"bank", "web"}, of), of, revisionOf(digest)},
		"another name":  {"shop/web/../../" + pathFor(Ref{"bank", "web"}, of), of, revisionOf(of)},
		"its revision":  {pathFor(web, digest), digest, "latest@sha256:0"},
		"an odd digest": {pathFor(web, digest), "sha256:../" + digest[len(digestPrefix):], revisionOf(digest)},
	} {
		modify(t, client, func(o *unstructured.Unstructured) {
			at := o.Object["status"].(map[string]any)["artifact"].(map[string]any)
			at["path"], at["url"], at["digest"], at["revision"] = artifact[0], k.options.URL+"/"+artifact[0], artifact[1], artifact[2]
		})
		if now, err := k.Find(t.Context(), web, "shop/web"); err != nil || string(now.Archive) == "secret" {
			t.Errorf("%s: found %q %v", name, now.Archive, err)
		}
		if text, err := k.Drift(t.Context(), web, digest); err != nil || text == "" {
			t.Errorf("%s: drift %q %v", name, text, err)
		}
	}
}

// TestNothingEqualIsWrittenWithoutTheGate asks before a file is brought back and before an object is, and not where all is there.
func TestNothingEqualIsWrittenWithoutTheGate(t *testing.T) {
	k, client := newKeeper(t)
	put(t, k, "one")
	closed := errors.New("on hold")
	asked := func() error {
		_, _, err := k.Put(t.Context(), web, Wanted{Pipeline: "shop/web", Archive: []byte("one"), Objects: []string{"v1 ConfigMap shop/one"}, Gate: func(now Current) error {
			if len(now.Objects) != 1 || string(now.Archive) != "one" {
				t.Errorf("the gate is told of %+v", now)
			}
			return closed
		}})
		return err
	}
	if err := asked(); err != nil {
		t.Errorf("where nothing is to be written: %v", err)
	}
	modify(t, client, func(o *unstructured.Unstructured) {
		o.Object["status"].(map[string]any)["artifact"].(map[string]any)["url"] = "http://elsewhere.example/"
	})
	if err := asked(); !errors.Is(err, closed) {
		t.Errorf("for the object: %v", err)
	}
	path, _ := pathOf(web, []byte("one"))
	if err := k.archives.removeArchiveFile(path); err != nil {
		t.Fatal(err)
	}
	if err := asked(); !errors.Is(err, closed) {
		t.Errorf("for the file: %v", err)
	}
	if files, err := k.archives.filesOfObject(web); err != nil || len(files) > 0 {
		t.Errorf("there are %v %v", files, err)
	}
}

// TestTheArchiveBeforeHasItsTime goes back to an old archive and away from it: its time begins when the object names another, not when
// it was last seen to be older.
func TestTheArchiveBeforeHasItsTime(t *testing.T) {
	k, _ := newKeeper(t)
	put(t, k, "one")
	put(t, k, "two")
	start := time.Now()
	k.Tidy(t.Context(), start) // one is unnamed from here
	put(t, k, "one")
	put(t, k, "two")
	k.Tidy(t.Context(), start.Add(time.Hour))
	path, _ := pathOf(web, []byte("one"))
	if code, _ := get(k, http.MethodGet, "/"+path); code != http.StatusOK {
		t.Errorf("the archive that was named a moment ago is answered with %d", code)
	}
}

// TestTheArchiveBeforeIsNotTheOldest brings an old archive back among younger ones, and has more come.
func TestTheArchiveBeforeIsNotTheOldest(t *testing.T) {
	k, _ := newKeeper(t)
	contents := []string{"one", "a", "b", "c", "d", "e"}
	for i, content := range contents {
		put(t, k, content)
		path, _ := pathOf(web, []byte(content))
		at := time.Now().Add(time.Duration(i-len(contents)) * time.Hour)
		if err := k.archives.root.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	put(t, k, "one")
	put(t, k, "f")
	path, _ := pathOf(web, []byte("one"))
	if code, _ := get(k, http.MethodGet, "/"+path); code != http.StatusOK {
		t.Errorf("the archive that was named a moment ago is answered with %d", code)
	}
}

// TestAnotherAddressIsLost has the daemon start with another artifacts.url: it asks once, and again later.
func TestAnotherAddressIsLost(t *testing.T) {
	k, client := newKeeper(t)
	put(t, k, "one")
	k.options.URL = "http://moved.example"
	asked := 0
	k.options.Lost = func(_ context.Context, ref Ref, pipeline string) {
		if asked++; ref != web || pipeline != "shop/web" {
			t.Errorf("lost are %s and %q", ref, pipeline)
		}
	}
	start := time.Now()
	for range 3 {
		k.Tidy(t.Context(), start)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if k.Tidy(t.Context(), start.Add(time.Hour)); asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	put(t, k, "one")
	if k.Tidy(t.Context(), start.Add(24*time.Hour)); asked != 2 {
		t.Errorf("what is mended is asked for")
	}
	k.options.URL = "http://again.example"
	modify(t, client, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{PipelineAnnotation: "bank/web"})
	})
	if k.Tidy(t.Context(), start.Add(48*time.Hour)); asked != 2 {
		t.Errorf("a pipeline of another namespace is asked for")
	}
}

// TestANamespaceHasItsRoom has one namespace keep more than it may; another is not concerned.
func TestANamespaceHasItsRoom(t *testing.T) {
	k, _ := newKeeper(t)
	put(t, k, "one")
	path, _ := pathOf(web, []byte("one"))
	if err := os.Truncate(filepath.Join(k.options.Dir, path), maxNamespace); err != nil {
		t.Skip(err) // a file system without sparse files
	}
	if _, _, err := k.Put(t.Context(), Ref{"shop", "other"}, Wanted{Pipeline: "shop/other", Archive: []byte("two")}); err == nil || !strings.Contains(err.Error(), "namespace shop") {
		t.Errorf("got %v", err)
	}
	if _, _, err := k.Put(t.Context(), Ref{"bank", "web"}, Wanted{Pipeline: "bank/web", Archive: []byte("two")}); err != nil {
		t.Error(err)
	}
}

// TestRemovingWithoutFlux ends where the cluster has no such kind any more.
func TestRemovingWithoutFlux(t *testing.T) {
	k, client := newKeeper(t)
	put(t, k, "one")
	client.PrependReactor("get", "externalartifacts", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, unknownKind() })
	if _, found, err := k.Remove(t.Context(), web, "shop/web"); found || err != nil {
		t.Errorf("removing: %v %v", found, err)
	}
	start := time.Now()
	k.Tidy(t.Context(), start)
	k.Tidy(t.Context(), start.Add(time.Hour))
	if files, err := k.archives.filesOfObject(web); err != nil || len(files) > 0 {
		t.Errorf("left are %v %v", files, err)
	}
}

// TestArchivesOfANamespace has the API server not let the objects of a namespace be read: because the namespace is gone, with the role
// that allowed it, or because somebody has taken only the role away.
func TestArchivesOfANamespace(t *testing.T) {
	forbidden := apierrors.NewForbidden(Resource.GroupResource(), web.Name, errors.New("no role"))
	gone := apierrors.NewNotFound(namespaces.GroupResource(), web.Namespace)
	for name, tc := range map[string]struct {
		namespace error // of reading it
		left      int
	}{
		"it is gone":             {gone, 0},
		"it is there":            {nil, 1},
		"it may not be read":     {apierrors.NewForbidden(namespaces.GroupResource(), web.Namespace, errors.New("no role")), 1},
		"the API server is away": {errors.New("connection refused"), 1},
		"what answers is no API": {unknownKind(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			k, client := newKeeper(t)
			put(t, k, "one")
			client.PrependReactor("get", "externalartifacts", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, forbidden
			})
			client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
				if tc.namespace != nil {
					return true, nil, tc.namespace
				}
				return true, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}, nil
			})
			start := time.Now()
			k.Tidy(t.Context(), start)
			if files, err := k.archives.filesOfObject(web); err != nil || len(files) != 1 {
				t.Errorf("at once left are %v %v", files, err)
			}
			k.Tidy(t.Context(), start.Add(time.Hour))
			if files, err := k.archives.filesOfObject(web); err != nil || len(files) != tc.left {
				t.Errorf("left are %v %v, want %d", files, err, tc.left)
			}
		})
	}
}

// unknownKind is the answer where there is no such kind.
func unknownKind() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse}}}}}
}
