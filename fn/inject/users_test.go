// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// TestOwnUserAndOverridesOfAnotherTime: a pod that was never injected has an own istio-proxy and the annotation in which an
// injection notes one. istiod reads the image from the annotation, and the user that the init container has to know from the
// container (the oracle's case multus/11/326).
func TestOwnUserAndOverridesOfAnotherTime(t *testing.T) {
	in, req := loadMerge(t, filepath.Join("testdata", "merge", "own-user-validation"))
	req.FromOriginal = true
	req.Pod = map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{
			overridesAnnotation: `{"containers":[{"name":"istio-proxy","image":"own:1","resources":{},"securityContext":{"runAsUser":3000}}]}`,
		}},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "web", "image": "web:1"},
			map[string]any{"name": "istio-proxy", "image": "auto", "securityContext": map[string]any{"runAsUser": int64(2000)}},
		}},
	}
	got, err := Istio(in, req)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPod(got.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if image := p.findProxyContainer(false)["image"]; image != "own:1" {
		t.Errorf("the proxy's image is %v, want that of the annotation", image)
	}
	validation := podmap.Find(p.specListMaps(initContainersKey), validationContainer)
	if uid, _ := securityContextField(validation, "runAsUser"); uid != int64(2000) {
		t.Errorf("%s runs as %v, want 2000", validationContainer, uid)
	}
	if want := []any{"-p", "15001", "-u", "2000"}; !reflect.DeepEqual(validation["args"], want) {
		t.Errorf("its arguments are %v, want %v", validation["args"], want)
	}
}

// TestSharedUserStaysInItsPlace: on OpenShift istiod takes a user that the pod's own istio-proxy shares with the application
// out before it makes its patch, so it stays where the proxy was in the list (the oracle's case openshift-old-kubelet/11/286).
func TestSharedUserStaysInItsPlace(t *testing.T) {
	for _, c := range []struct {
		name     string
		native   istio.Native
		pod      string
		list     string
		at       int
		want     map[string]any
		warnings int
	}{
		{
			"on the own proxy that nothing is injected over", istio.NativeDisabled,
			`{initContainers: [{name: setup, image: i}, {name: istio-proxy, image: i, restartPolicy: Always, securityContext: {runAsGroup: 2000}}], containers: [{name: web, image: i}]}`,
			initContainersKey, 1, map[string]any{"name": proxyContainer, "securityContext": map[string]any{"runAsGroup": int64(2000)}}, 0,
		},
		{
			"on the application in its place", istio.NativeEnabled,
			`{containers: [{name: istio-proxy, image: auto, securityContext: {runAsUser: 5, runAsGroup: 6}}, {name: web, image: i, securityContext: {runAsUser: 5}}]}`,
			containersKey, 0, map[string]any{"name": "web", "securityContext": map[string]any{"runAsUser": int64(5), "runAsGroup": int64(6)}}, 1,
		},
		{
			"nowhere without a security context", istio.NativeEnabled,
			`{containers: [{name: istio-proxy, image: auto, securityContext: {runAsGroup: 6}}, {name: web, image: i}]}`,
			containersKey, 0, map[string]any{"name": "web", "securityContext": nil}, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var config map[string]any
			read(t, filepath.Join("testdata", "merge", "config.yaml"), &config)
			in := newInjector(t, istio.Options{Version: "1.31", Config: text(t, config), Values: "{validation: true}", Native: c.native,
				IstiodEnv: map[string]string{"PLATFORM": "openshift"}})
			spec, err := manifest.Decode([]byte(c.pod))
			if err != nil {
				t.Fatal(err)
			}
			request := Request{
				Pod:       map[string]any{"spec": spec},
				Namespace: Namespace{Name: "shop", Known: true, Annotations: map[string]string{uidRangeAnnotation: "1000620000/10000"}},
			}
			got, err := Istio(in, request)
			if err != nil {
				t.Fatal(err)
			}
			p, err := newPod(got.Pod)
			if err != nil {
				t.Fatal(err)
			}
			stands, _ := p.specListMaps(c.list)[c.at].(map[string]any)
			if stands["name"] != c.want["name"] || !cmp.Equal(stands["securityContext"], c.want["securityContext"]) {
				t.Errorf("in its place is %v, want %v", stands, c.want)
			}
			if len(got.Warnings) != c.warnings {
				t.Errorf("the warnings are %q, want %d", got.Warnings, c.warnings)
			}
		})
	}
}
