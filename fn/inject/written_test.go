// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/internal/defaulter"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// podsPerCase is how many generated pods each configuration of testdata/merge injects.
const podsPerCase = 60

// TestWrittenMeansInjected compares what is written, with the defaults of Kubernetes' own code, with what the webhook makes of
// the pod that Kubernetes' own code has defaulted, and with those defaults again. So it does not matter to it how the engine
// finds the defaults, nor how it leaves them out.
func TestWrittenMeansInjected(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "merge", "*", "case.yaml"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	commands := defaulter.Find(t, "../..")
	for _, command := range commands {
		t.Run(command.Version, func(t *testing.T) {
			var pairs []writtenPair
			for i, file := range cases {
				pairs = append(pairs, injectBoth(t, command, filepath.Dir(file), uint64(i))...)
			}
			var got, want []map[string]any
			for _, p := range pairs {
				got, want = append(got, podObject(p.written)), append(want, podObject(p.injected))
			}
			got, want = command.Objects(t, got), command.Objects(t, want)
			bad := 0
			for i, p := range pairs {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					if bad++; bad <= 3 {
						t.Errorf("%s: written %s\n(-injected +written, both defaulted):\n%s", p.name, marshal(t, p.written), diff)
					}
				}
			}
			t.Logf("%d pods injected, %d different", len(pairs), bad)
		})
	}
}

// writtenPair is a pod that was injected in both ways.
type writtenPair struct {
	name string
	// user is the pod, written what is written, and injected what the webhook makes of the defaulted pod.
	user, written, injected map[string]any
}

// injectBoth injects generated pods with a case's configuration, as they are written and as Kubernetes defaults them.
func injectBoth(t *testing.T, command defaulter.Command, dir string, seed uint64) []writtenPair {
	t.Helper()
	in, req := loadMergeSeen(t, dir, istio.AdmissionDefaulted, command.Version)
	raw, _ := loadMergeSeen(t, dir, istio.AdmissionRaw, command.Version)
	g := defaulter.NewGenerator(seed, command.Minor)
	users := []map[string]any{req.Pod}
	for len(users) < podsPerCase {
		pod := g.Pod()
		claim(g, pod)
		users = append(users, pod)
	}
	var objects []map[string]any
	for _, pod := range users {
		objects = append(objects, podObject(pod))
	}
	var out []writtenPair
	for i, defaulted := range command.Objects(t, objects) {
		if message, refused := defaulter.Refused(defaulted); refused {
			t.Fatalf("%s: Kubernetes refuses pod %d: %s", dir, i, message)
		}
		p := writtenPair{name: fmt.Sprintf("%s pod %d", filepath.Base(dir), i), user: users[i]}
		req.Pod = users[i]
		written, err := Istio(in, req)
		req.Pod = decoded(t, map[string]any{"metadata": users[i]["metadata"], "spec": defaulted["spec"]})
		injected, rawErr := Istio(raw, req)
		if (err == nil) != (rawErr == nil) {
			t.Errorf("%s: %v, and with the defaulted pod %v", p.name, err, rawErr)
		}
		if err != nil || rawErr != nil {
			continue
		}
		p.written, p.injected = written.Pod, injected.Pod
		checkSparse(t, in, p)
		out = append(out, p)
	}
	return out
}

// claim makes some of the pods have containers and volumes of the names that the templates use.
func claim(g *defaulter.Generator, pod map[string]any) {
	spec, _ := pod["spec"].(map[string]any)
	delete(spec, "hostNetwork") // such pods are not injected
	for key, name := range map[string]string{containersKey: proxyContainer, initContainersKey: initContainer, "volumes": "istio-envoy"} {
		list, _ := spec[key].([]any)
		if len(list) > 1 && g.Coin() {
			m, _ := list[len(list)-1].(map[string]any)
			m["name"] = name
			if _, ok := m["image"].(string); ok && g.Coin() {
				m["image"] = autoImage
			}
		}
	}
}

func podObject(pod map[string]any) map[string]any {
	meta := podmap.CopyMap(pod["metadata"].(map[string]any))
	meta["name"] = "web"
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod["spec"]}
}

// decoded returns a value as a manifest has it: with whole numbers.
func decoded(t *testing.T, obj map[string]any) map[string]any {
	t.Helper()
	v, err := manifest.Decode([]byte(marshal(t, obj)))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

// checkSparse makes sure that no default is written that the pod would come out with anyway.
func checkSparse(t *testing.T, in *istio.Injector, p writtenPair) {
	t.Helper()
	server := in.APIServer()
	user, err := newPod(p.user)
	if err != nil {
		t.Fatal(err)
	}
	written, err := newPod(p.written)
	if err != nil {
		t.Fatal(err)
	}
	seen, want := admittedPod(*server, user), admittedPod(*server, written)
	for _, path := range defaultsWritten(user.spec, seen.spec, written.spec, nil) {
		less := written.deepCopy()
		drop(less.spec, path)
		if podmap.Same(admittedPod(*server, less).spec, want.spec) {
			t.Errorf("%s: the default %s is written, and need not be", p.name, strings.Join(path, "."))
		}
	}
}

// defaultsWritten are the paths of values that the user did not write and that are those of the default.
func defaultsWritten(user, seen, written any, path []string) [][]string {
	var out [][]string
	switch s := seen.(type) {
	case map[string]any:
		u, _ := user.(map[string]any)
		w, _ := written.(map[string]any)
		for key, v := range s {
			now, there := w[key]
			_, had := u[key]
			at := append(append([]string(nil), path...), key)
			switch {
			case !there:
			case !had && podmap.Same(v, now):
				out = append(out, at)
			default:
				out = append(out, defaultsWritten(u[key], v, now, at)...)
			}
		}
	case []any:
		u, _ := user.([]any)
		w, _ := written.([]any)
		for i, e := range s {
			m, _ := e.(map[string]any)
			name, ok := m["name"].(string)
			if !ok || i >= len(u) || podmap.Find(u[:i], name) != nil {
				continue
			}
			out = append(out, defaultsWritten(u[i], e, anyMap(podmap.Find(w, name)), append(append([]string(nil), path...), name))...)
		}
	}
	return out
}

func anyMap(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// drop takes the value at a path out of a value; elements of lists go by their names.
func drop(v any, path []string) {
	switch v := v.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		drop(v[path[0]], path[1:])
	case []any:
		drop(anyMap(podmap.Find(v, path[0])), path[1:])
	}
}

// TestOwnProxyComesBack injects a pod whose own istio-proxy has no defaults and takes the injection out again.
func TestOwnProxyComesBack(t *testing.T) {
	for _, dir := range []string{"own-proxy-defaults", "own-user", "own-user-tproxy", "probe-grpc-without-timeout"} {
		t.Run(dir, func(t *testing.T) {
			in, req := loadMerge(t, filepath.Join("testdata", "merge", dir))
			res, err := Istio(in, req)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Remove(RemoveRequest{Pod: res.Pod})
			if err != nil {
				t.Fatal(err)
			}
			spec, _ := out.Pod["spec"].(map[string]any)
			want, _ := req.Pod["spec"].(map[string]any)
			for _, e := range want[containersKey].([]any) {
				m, _ := e.(map[string]any)
				name, _ := m["name"].(string)
				got := podmap.Find(spec[containersKey].([]any), name)
				probe, _ := m["livenessProbe"].(map[string]any)
				if get, ok := probe["httpGet"].(map[string]any); ok && get["path"] == nil {
					get["path"] = "/" // what the agent knows, and means the same
				}
				if diff := cmp.Diff(m, got); diff != "" {
					t.Errorf("%s (-original +removed):\n%s", name, diff)
				}
			}
			again, err := Istio(in, Request{Pod: out.Pod, Owner: req.Owner, Namespace: req.Namespace})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(marshal(t, res.Pod), marshal(t, again.Pod)); diff != "" {
				t.Errorf("injecting what was removed gives something else:\n%s", diff)
			}
		})
	}
}

// TestReplacedIsWrittenWhole injects pods whose own containers and volumes Istio up to 1.8 replaces: what stands in their place
// is written with all that the template says, so that injecting again, when they are gone, writes the same.
func TestReplacedIsWrittenWhole(t *testing.T) {
	for minor := range 9 {
		in := appendInjector(t, minor, "", "", "", nil)
		for name, own := range map[string]string{
			"another istio-init": `"initContainers": [{"name": "istio-init", "image": "own:1"}]`,
			"the same":           `"initContainers": [{"name": "istio-init", "image": "init:1", "args": ["-p", "15001"]}]`,
			"an istio-proxy":     `"containers": [{"name": "web", "image": "web:1"}, {"name": "istio-proxy", "image": "own:1"}]`,
			"a volume":           `"volumes": [{"name": "istio-envoy"}, {"name": "own"}]`,
		} {
			if !strings.Contains(own, `"containers"`) {
				own += `, "containers": [{"name": "web", "image": "web:1"}]`
			}
			pod := decodeObject(t, []byte(`{"metadata": {"name": "web"}, "spec": {`+own+`}}`))
			bare := decodeObject(t, []byte(`{"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}`))
			once, plain := injectAgain(t, in, pod), injectAgain(t, in, bare)
			if diff := cmp.Diff(once, injectAgain(t, in, once)); diff != "" {
				t.Errorf("1.%d, %s: injecting twice is not injecting once:\n%s", minor, name, diff)
			}
			for _, key := range []string{initContainersKey, containersKey, "volumes"} {
				want, _ := mapAt(plain, "spec")[key].([]any)
				got, _ := mapAt(once, "spec")[key].([]any)
				for _, element := range podmap.Names(want) {
					if diff := cmp.Diff(podmap.Find(want, element), podmap.Find(got, element)); diff != "" {
						t.Errorf("1.%d, %s: spec.%s[%s] is not what a pod without it gets:\n%s", minor, name, key, element, diff)
					}
				}
			}
		}
	}
}

// injectAgain injects over whatever injection the pod has.
func injectAgain(t *testing.T, in *istio.Injector, pod map[string]any) map[string]any {
	t.Helper()
	got, err := Istio(in, Request{Pod: pod, FromOriginal: true})
	if err != nil {
		t.Fatal(err)
	}
	return got.Pod
}
