// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
)

const quantitiesTemplate = `spec:
  %s:
  - name: istio-proxy
    image: proxy
    resources:
      requests: {cpu: 100m, memory: 128Mi}
      limits: {cpu: "2", memory: 1Gi}
`

// TestNullQuantitiesOfTheOwnProxyAreZero injects pods whose own istio-proxy has quantities that are null, as charts print a
// value that is not set. Kubernetes reads null as 0, and the webhook puts the pod's own quantity over the template's.
func TestNullQuantitiesOfTheOwnProxyAreZero(t *testing.T) {
	tests := map[string]struct{ resources, want string }{
		"request of CPU":    {`{requests: {cpu: null}}`, `{requests: {cpu: "0", memory: 128Mi}, limits: {cpu: "2", memory: 1Gi}}`},
		"request of memory": {`{requests: {memory: null, cpu: 1}}`, `{requests: {cpu: "1", memory: "0"}, limits: {cpu: "2", memory: 1Gi}}`},
		// The API server requests what is limited, so that the request of 0 is left out.
		"limit and its request":  {`{limits: {cpu: null}}`, `{requests: {memory: 128Mi}, limits: {cpu: "0", memory: 1Gi}}`},
		"limits beside requests": {`{limits: {memory: null}, requests: {memory: 0}}`, `{requests: {cpu: 100m, memory: "0"}, limits: {cpu: "2", memory: "0"}}`},
		"one that is not the template's": {`{requests: {ephemeral-storage: null}}`,
			`{requests: {cpu: 100m, memory: 128Mi, ephemeral-storage: "0"}, limits: {cpu: "2", memory: 1Gi}}`},
		"all of a kind": {`{requests: null, limits: null}`, `{requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: "2", memory: 1Gi}}`},
	}
	for _, native := range []istio.Native{istio.NativeEnabled, istio.NativeDisabled} {
		for _, list := range []string{containersKey, initContainersKey} {
			for name, test := range tests {
				t.Run(fmt.Sprint(native, " ", list, " ", name), func(t *testing.T) {
					sameQuantities(t, native, list, test.resources, test.want)
				})
			}
		}
	}
}

func sameQuantities(t *testing.T, native istio.Native, list, resources, want string) {
	t.Helper()
	there := containersKey
	if native == istio.NativeEnabled {
		there = initContainersKey
	}
	if list == initContainersKey && there == containersKey {
		t.Skip("an init container of this name is none that the template overrides")
	}
	in := newInjector(t, istio.Options{Version: "1.31", Config: sidecarConfig(fmt.Sprintf(quantitiesTemplate, there)), Values: "{}", Native: native})
	pod := podOf(t, `{metadata: {}, spec: {containers: [{name: web, image: web}]}}`)
	spec, _ := pod["spec"].(map[string]any)
	own, _ := spec[list].([]any)
	spec[list] = append(own, podOf(t, "{name: istio-proxy, image: auto, resources: "+resources+"}"))
	res, err := Istio(in, Request{Pod: pod, Namespace: Namespace{Name: "shop"}, RecordNulls: true})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := podmap.Typed(res.Pod)
	if err != nil {
		t.Fatal(err)
	}
	proxies := typed.Spec.Containers
	if there == initContainersKey {
		proxies = typed.Spec.InitContainers
	}
	for _, c := range proxies {
		if c.Name != "istio-proxy" {
			continue
		}
		got, _ := json.Marshal(c.Resources)
		wanted, err := podmap.TypedContainer(podOf(t, "{name: x, resources: "+want+"}"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(wanted.Resources)
		if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("the proxy's resources:\n%s", diff)
		}
	}
	removed, err := Remove(RemoveRequest{Pod: res.Pod, Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ownResources(pod, list), ownResources(removed.Pod, list)); diff != "" && list == containersKey && !strings.Contains(resources, "requests: null") {
		t.Errorf("removing gives another pod:\n%s", diff)
	}
}

func ownResources(pod map[string]any, list string) any {
	spec, _ := pod["spec"].(map[string]any)
	containers, _ := spec[list].([]any)
	return podmap.Find(containers, "istio-proxy")["resources"]
}
