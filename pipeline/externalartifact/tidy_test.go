// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	dynamicfake "k8s.io/client-go/dynamic/fake"
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
	k.options.Lost = func(_ context.Context, pipeline string) {
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
