// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

func notes(list []Note) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.Field
	}
	return strings.Join(out, " ")
}

// The status annotations of an injection of Istio 1.11 and later, and of one of 1.1 to 1.8.
const (
	statusOfMerge  = `"sidecar.istio.io/status": "{\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-envoy\"],\"imagePullSecrets\":null,\"revision\":\"default\"}"`
	statusOfAppend = `"sidecar.istio.io/status": "{\"version\":\"abc\",\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-envoy\"],\"imagePullSecrets\":[\"registry\"]}"`
)

// removalCase is an injection that is written by hand, with one kind of trace.
type removalCase struct {
	injected, want string
	// unknown, assumed and listed are what is said of the original: fields, and containers.
	unknown, assumed, listed string
	// alone says that nothing was injected, so that the pod is left alone.
	alone bool
}

// testRemovals takes the injections out again.
func testRemovals(t *testing.T, tests map[string]removalCase) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := decodeObject(t, []byte(test.injected))
			if spec := mapAt(pod, "spec"); spec["containers"] == nil {
				spec["containers"] = []any{map[string]any{"name": proxyContainer, "args": []any{"proxy"}}} // what the status lists is there
			}
			before := podmap.CopyMap(pod)
			out, err := Remove(RemoveRequest{Pod: pod, Owner: workload.Owner{Name: "web-deployment"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decodeObject(t, []byte(test.want)), out.Pod); diff != "" {
				t.Error(diff)
			}
			if got := notes(out.Unknown); got != test.unknown {
				t.Errorf("unknown %q, want %q", got, test.unknown)
			}
			if got := strings.Join(out.Listed, " "); got != test.listed {
				t.Errorf("listed %q, want %q", got, test.listed)
			}
			if got := notes(out.Assumed); got != test.assumed {
				t.Errorf("assumed %q, want %q", got, test.assumed)
			}
			if out.Injected == test.alone || out.Exact {
				t.Errorf("injected %t, exact %t", out.Injected, out.Exact)
			}
			if !reflect.DeepEqual(before, pod) {
				t.Error("the argument changed")
			}
		})
	}
}

func TestRemoveErrors(t *testing.T) {
	const status = `"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"]}"`
	tests := map[string]struct{ pod, want string }{
		"no spec":         {`{"metadata": {}}`, "spec: "},
		"broken override": {`{"metadata": {"annotations": {` + status + `, "proxy.istio.io/overrides": "["}}, "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"]}]}}`, "proxy.istio.io/overrides"},
		"broken record":   {`{"metadata": {"annotations": {"prerig.dev/original": "{}"}}, "spec": {}}`, "prerig.dev/original"},
		"record no JSON":  {`{"metadata": {"annotations": {"prerig.dev/original": "["}}, "spec": {}}`, "prerig.dev/original"},
	}
	for name, test := range tests {
		_, err := Remove(RemoveRequest{Pod: decodeObject(t, []byte(test.pod))})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: have %v", name, err)
		}
	}
}

// TestUpgrade injects with an old version and then with another one.
func TestUpgrade(t *testing.T) {
	var pods [9]map[string]any
	var injectors [9]*istio.Injector
	for minor := range pods {
		injectors[minor] = appendInjector(t, minor, "", "", "", nil)
		pods[minor] = appendTo(t, injectors[minor], appendPod)
	}
	for from := range pods {
		for to := range pods {
			got := appendTo(t, injectors[to], marshal(t, pods[from]))
			// The application's startup probe has a port name that it does not have: from 1.7 its path is lost (and named).
			want := decodeObject(t, []byte(marshal(t, pods[to])))
			if from >= 7 {
				for _, pod := range []map[string]any{got, want} {
					web := podmap.Find(mapAt(pod, "spec")["containers"].([]any), "web")
					delete(web, "startupProbe")
					env, _ := podmap.Find(mapAt(pod, "spec")["containers"].([]any), proxyContainer)["env"].([]any)
					if e := podmap.Find(env, probersEnv); e != nil {
						e["value"] = strings.Replace(e["value"].(string), `,"/app-health/web/startupz":{"httpGet":{"path":"/app-health/web/startupz","port":15020,"scheme":"HTTP"},"timeoutSeconds":1}`, "", 1)
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("1.%d to 1.%d: %s", from, to, diff)
			}
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// FuzzRemove looks for pods on which removal panics, changes its argument, or does not come to rest.
func FuzzRemove(f *testing.F) {
	f.Add(appendPod)
	f.Add(`{"metadata": {"annotations": {"sidecar.istio.io/status": "{}", "prerig.dev/original": "{\"patch\":{\"spec\":{\"containers\":[{\"$patch\":\"delete\",\"name\":\"a\"}]}}}"}}, "spec": {"containers": [{"name": "a"}]}}`)
	f.Add(`{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"a\"],\"volumes\":[\"v\"]}", "proxy.istio.io/overrides": "{\"containers\":[{\"name\":\"a\"}]}"}}, "spec": {"containers": [{"name": "a", "volumeMounts": [1, null]}], "volumes": [{"name": "v"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var pod map[string]any
		if json.Unmarshal([]byte(text), &pod) != nil || pod == nil {
			return
		}
		before := fmt.Sprint(pod)
		out, err := Remove(RemoveRequest{Pod: pod})
		if fmt.Sprint(pod) != before {
			t.Fatal("the argument changed")
		}
		if err != nil || out.Exact {
			return
		}
		again, err := Remove(RemoveRequest{Pod: out.Pod})
		if err != nil || again.Injected || !reflect.DeepEqual(out.Pod, again.Pod) {
			t.Errorf("removing twice: %v, injected %t", err, again.Injected)
		}
	})
}
