// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/result"
)

var (
	a = "sha256:" + strings.Repeat("a", 64)
	b = "sha256:" + strings.Repeat("b", 64)
)

func lock(t *testing.T) *pin.Lock {
	t.Helper()
	l, err := pin.NewLock(map[string]string{"docker.io/istio/mirrored:1": "registry.example/istio/mirrored:1@" + b},
		v1alpha1.NewImageLock("mesh", []v1alpha1.LockedImage{
			{Image: "docker.io/istio/proxyv2:1.31.0", Digest: a},
			{Image: "localhost:5000/tool:2", Digest: b},
			{Image: "busybox", Digest: b},
		}))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestFind(t *testing.T) {
	l := lock(t)
	for image, want := range map[string]string{
		"docker.io/istio/proxyv2:1.31.0":       "docker.io/istio/proxyv2:1.31.0@" + a,
		"istio/proxyv2:1.31.0":                 "istio/proxyv2:1.31.0@" + a,
		"index.docker.io/istio/proxyv2:1.31.0": "index.docker.io/istio/proxyv2:1.31.0@" + a,
		"istio/proxyv2:1.31.1":                 "",
		"istio/proxyv2":                        "",
		"quay.io/istio/proxyv2:1.31.0":         "",
		"localhost:5000/tool:2":                "localhost:5000/tool:2@" + b,
		"busybox":                              "busybox@" + b,
		"busybox:latest":                       "busybox:latest@" + b,
		"docker.io/library/busybox:latest":     "docker.io/library/busybox:latest@" + b,
		"istio/mirrored:1":                     "registry.example/istio/mirrored:1@" + b,
		"anything:1@" + b:                      "anything:1@" + b,
	} {
		got, ok := l.Find(image)
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
	if _, ok := (*pin.Lock)(nil).Find("a:1"); ok {
		t.Error("no lock knows an image")
	}
}

const podText = `
metadata: {name: shop}
spec:
  initContainers:
  - {name: istio-init, image: "docker.io/istio/proxyv2:1.31.0"}
  - {name: migrate, image: "docker.io/istio/proxyv2:1.31.0"}
  containers:
  - {name: app, image: "busybox"}
  - {name: istio-proxy, image: "docker.io/istio/proxyv2:1.31.0", env: [{name: A, value: B}]}
  - {name: other, image: "registry.example/other:1"}
`

func pod(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(podText), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func images(pod map[string]any) map[string]string {
	out := map[string]string{}
	for _, key := range []string{"initContainers", "containers"} {
		for _, c := range pod["spec"].(map[string]any)[key].([]any) {
			m := c.(map[string]any)
			out[m["name"].(string)] = m["image"].(string)
		}
	}
	return out
}

func TestApply(t *testing.T) {
	injected := []string{"istio-init", "istio-proxy", "other"}
	for _, c := range []struct {
		missing pin.OnMissing
		want    result.Severity
	}{{pin.Ignore, ""}, {"", ""}, {pin.Warn, result.Warning}, {pin.Fail, result.Error}} {
		given := pod(t)
		before, _ := json.Marshal(given)
		got, results := pin.Apply(given, injected, lock(t), c.missing)
		want := map[string]string{
			"istio-init": "docker.io/istio/proxyv2:1.31.0@" + a, "migrate": "docker.io/istio/proxyv2:1.31.0",
			"app": "busybox", "istio-proxy": "docker.io/istio/proxyv2:1.31.0@" + a, "other": "registry.example/other:1",
		}
		if diff := cmp.Diff(want, images(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.missing, diff)
		}
		if results.Worst() != c.want {
			t.Errorf("%s: severity %q, want %q", c.missing, results.Worst(), c.want)
		}
		if c.want != "" && (len(results) != 1 || results[0].Field.Path != "spec.containers[2].image" || results[0].Tags[result.TagCode] != pin.Code) {
			t.Errorf("%s: %v", c.missing, results)
		}
		if after, _ := json.Marshal(given); string(after) != string(before) {
			t.Errorf("%s: the pod given was changed", c.missing)
		}
		again, _ := pin.Apply(got, injected, lock(t), c.missing)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("%s: pinning twice differs:\n%s", c.missing, diff)
		}
	}
}

func TestApplyToNothing(t *testing.T) {
	given := pod(t)
	for name, got := range map[string]map[string]any{
		"nothing injected": first(pin.Apply(given, nil, lock(t), pin.Fail)),
		"no lock":          first(pin.Apply(given, []string{"istio-proxy"}, nil, pin.Ignore)),
	} {
		if diff := cmp.Diff(given, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for _, bad := range []map[string]any{nil, {}, {"spec": "text"}, {"spec": map[string]any{"containers": []any{nil, "text", map[string]any{"name": 1}}}}} {
		if _, results := pin.Apply(bad, []string{"istio-proxy", ""}, lock(t), pin.Fail); results != nil {
			t.Errorf("%v: %v", bad, results)
		}
	}
}

func first(pod map[string]any, _ result.Results) map[string]any { return pod }

func TestLocksThatDisagree(t *testing.T) {
	one := v1alpha1.NewImageLock("one", []v1alpha1.LockedImage{{Image: "busybox:1", Digest: a}})
	two := v1alpha1.NewImageLock("two", []v1alpha1.LockedImage{{Image: "docker.io/library/busybox:1", Digest: b}})
	_, err := pin.NewLock(nil, one, two)
	if err == nil || !strings.Contains(err.Error(), "by one and to "+b+" by two") {
		t.Errorf("error %v", err)
	}
	if _, err := pin.NewLock(nil, one, one); err != nil {
		t.Errorf("the same lock twice: %v", err)
	}
}
