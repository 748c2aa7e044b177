// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
)

var toArtifact = v1alpha1.Publish{ExternalArtifact: &v1alpha1.ExternalArtifactPublish{Name: "shop", Namespace: "shop"}}

func openArtifact(t *testing.T) (target publish.Interface, targets *publish.Targets, client *dynamicfake.FakeDynamicClient, dir string) {
	t.Helper()
	client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{externalartifact.Resource: "ExternalArtifactList"})
	dir = filepath.Join(t.TempDir(), "artifacts")
	keeper, err := externalartifact.Open(externalartifact.Options{Dir: dir, URL: "http://prerig.example", Grace: time.Minute, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keeper.Close() })
	targets = newTargets(registries{})
	targets.Artifacts = keeper
	if target, err = targets.Open(ctx, "shop", toArtifact); err != nil {
		t.Fatal(err)
	}
	return target, targets, client, dir
}

// TestExternalArtifacts publishes, publishes the same, another content and nothing, and removes it.
func TestExternalArtifacts(t *testing.T) {
	target, _, client, dir := openArtifact(t)
	publishIt := func(c publish.Change) publish.Receipt {
		t.Helper()
		receipt, err := target.Publish(ctx, c)
		if err != nil || receipt.Problem != nil {
			t.Fatalf("got %v, %v", err, receipt.Problem)
		}
		return receipt
	}
	first := publishIt(change(t, "shop", "", configMap("a", "1"), configMap("b", "1")))
	if !first.Changed || len(first.Outcome.Added) != 2 || len(first.Revision) != len("sha256:")+64 {
		t.Errorf("the first gave %+v", first)
	}
	if again := publishIt(change(t, "shop", "", configMap("b", "1"), configMap("a", "1"))); again.Changed || again.Revision != first.Revision {
		t.Errorf("the same gave %+v", again)
	}
	var asked []string
	c := change(t, "shop", "", configMap("a", "2"), configMap("c", "1"))
	c.Gate = func(published int, deleted []string) error {
		asked = deleted
		if published != 2 {
			t.Errorf("the gate is told of %d objects", published)
		}
		return nil
	}
	second := publishIt(c)
	if o := second.Outcome; len(o.Added) != 1 || len(o.Modified) != 1 || len(o.Deleted) != 1 || string(second.Old(o.Modified[0])) == string(second.Files[o.Modified[0]]) {
		t.Errorf("the second gave %+v", second.Outcome)
	}
	if len(asked) != 1 {
		t.Errorf("the gate is asked about %q", asked)
	}
	held, err := target.Current(ctx, "shop", nil)
	if err != nil || held.Refused != nil || len(held.Files) != 2 || len(held.Objects) != 2 {
		t.Errorf("it holds %+v, %v", held, err)
	}
	if text, err := target.Drift(ctx, publish.Written{Revision: second.Revision}); text != "" || err != nil {
		t.Errorf("drift %q, %v", text, err)
	}
	if text, err := target.Drift(ctx, publish.Written{Revision: first.Revision}); text == "" || err != nil {
		t.Errorf("no drift, %v", err)
	}

	// Without the volume, the object still tells the gate what there was.
	if err := os.RemoveAll(filepath.Join(dir, "shop")); err != nil {
		t.Fatal(err)
	}
	closed := errors.New("closed")
	c = change(t, "shop", "", configMap("d", "1"))
	c.Gate = func(published int, deleted []string) error {
		asked = deleted
		if published != 2 {
			t.Errorf("without the volume the gate is told of %d objects", published)
		}
		return closed
	}
	if _, err := target.Publish(ctx, c); !errors.Is(err, closed) || len(asked) != 2 {
		t.Errorf("got %v, about %q", err, asked)
	}
	removed, err := target.Remove(ctx, publish.Change{Pipeline: "shop"})
	if err != nil || !removed.Changed {
		t.Errorf("removing gave %+v, %v", removed, err)
	}
	if _, err := client.Resource(externalartifact.Resource).Namespace("shop").Get(ctx, "shop", metav1.GetOptions{}); err == nil {
		t.Error("the object is there")
	}
	if removed, err := target.Remove(ctx, publish.Change{Pipeline: "shop"}); err != nil || removed.Changed {
		t.Errorf("removing it again gave %+v, %v", removed, err)
	}
}

// TestExternalArtifactOfAnother refuses what a pipeline has not made, as files are refused, so that it may be taken over from one that is
// gone.
func TestExternalArtifactOfAnother(t *testing.T) {
	target, targets, _, _ := openArtifact(t)
	if _, err := target.Publish(ctx, change(t, "other", "", configMap("a", "1"))); err != nil {
		t.Fatal(err)
	}
	c := change(t, "shop", "", configMap("a", "2"))
	if _, err := target.Publish(ctx, c); !publish.IsNotOwned(err) {
		t.Errorf("got %v", err)
	}
	if held, err := target.Current(ctx, "shop", nil); err != nil || held.Refused == nil {
		t.Errorf("it holds %+v, %v", held, err)
	}
	c.Predecessors = []string{"other"}
	if receipt, err := target.Publish(ctx, c); err != nil || !slices.Equal(receipt.Outcome.Modified, slices.Sorted(maps.Keys(c.Files))) {
		t.Errorf("got %+v, %v", receipt.Outcome, err)
	}
	targets.Artifacts = nil
	if _, err := targets.Open(ctx, "shop", toArtifact); !errors.Is(err, publish.ErrNoArtifacts) {
		t.Errorf("a process that serves none says %v", err)
	}
}

// TestExternalArtifactThatIsNotKnown has neither the file nor the list of its objects: what would be deleted cannot be said.
func TestExternalArtifactThatIsNotKnown(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"gone": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "shop")) },
		"damaged": func(dir string) error {
			files, err := filepath.Glob(filepath.Join(dir, "shop/shop/*.tar.gz"))
			if err != nil || len(files) != 1 {
				return fmt.Errorf("there are %q: %w", files, err)
			}
			return os.WriteFile(files[0], []byte("odd"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			target, _, client, dir := openArtifact(t)
			first := change(t, "shop", "", configMap("a", "1"), configMap("b", "1"))
			if _, err := target.Publish(ctx, first); err != nil {
				t.Fatal(err)
			}
			at := client.Resource(externalartifact.Resource).Namespace("shop")
			o, err := at.Get(ctx, "shop", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			unstructured.RemoveNestedField(o.Object, "status", "artifact", "metadata")
			if _, err := at.Update(ctx, o, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			c := change(t, "shop", "", configMap("c", "1"))
			c.Gate = func(published int, deleted []string) error {
				t.Errorf("the gate is told of %d objects and %q", published, deleted)
				return nil
			}
			if _, err := target.Publish(ctx, c); err == nil || !strings.Contains(err.Error(), "delete the object") {
				t.Errorf("publishing something else gave %v", err)
			}
			if held, err := target.Current(ctx, "shop", nil); err == nil {
				t.Errorf("it holds %+v", held)
			}
			if again, err := target.Publish(ctx, first); err != nil || again.Problem != nil {
				t.Errorf("the same gave %+v, %v", again, err)
			}
			if held, err := target.Current(ctx, "shop", nil); err != nil || len(held.Objects) != 2 {
				t.Errorf("it holds %+v, %v", held, err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			if removed, err := target.Remove(ctx, publish.Change{Pipeline: "shop"}); err != nil || removed.Problem == nil {
				t.Errorf("removing gave %+v, %v", removed, err)
			}
		})
	}
}
