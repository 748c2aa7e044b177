// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.(map[string]any)
	return m
}

// TestKeepLast checks which entries of a list stay, and that the variables of a container keep their values.
func TestKeepLast(t *testing.T) {
	for _, test := range []struct{ name, before, after, want, fail string }{
		{
			name:  "the last value at its own place",
			after: `[{name: A, value: "1"}, {name: B, value: "2"}, {name: A, value: "3"}]`,
			want:  `[{name: B, value: "2"}, {name: A, value: "3"}]`,
		}, {
			name:  "the same value before the variable that reads it",
			after: `[{name: A, value: "1"}, {name: B, value: $(A)/b}, {name: A, value: "1"}]`,
			want:  `[{name: A, value: "1"}, {name: B, value: $(A)/b}]`,
		}, {
			name:  "another value that a variable in between reads",
			after: `[{name: A, value: x}, {name: B, value: $(A)/$$(A)/$(C)}, {name: A, value: "y"}, {name: D, value: $(A)}]`,
			want:  `[{name: B, value: x/$$(A)/$(C)}, {name: A, value: "y"}, {name: D, value: $(A)}]`,
		}, {
			name:  "a value that adds to the former one",
			after: `[{name: P, value: /bin}, {name: P, value: "$(P):/sbin"}, {name: P, value: "$(P):/usr/bin"}]`,
			want:  `[{name: P, value: "/bin:/sbin:/usr/bin"}]`,
		}, {
			name:  "a value that nothing reads from a field",
			after: `[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: A, value: "1"}]`,
			want:  `[{name: A, value: "1"}]`,
		}, {
			name:  "a value that a variable reads from a field",
			after: `[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, value: $(A)}, {name: A, value: "1"}]`,
			fail:  "$(A) in between",
		}, {
			name:  "an optional key after a value",
			after: `[{name: A, value: "1"}, {name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]`,
			fail:  "the variable A is there 2 times",
		}, {
			name:  "a reference that would arise from the value",
			after: `[{name: A, value: "$"}, {name: B, value: "$(A)(C)"}, {name: A, value: "1"}]`,
			fail:  "the variable A is there 2 times",
		}, {
			name:  "a variable before the first",
			after: `[{name: B, value: $(A)}, {name: A, value: "1"}, {name: A, value: "2"}]`,
			want:  `[{name: B, value: $(A)}, {name: A, value: "2"}]`,
		}, {
			name:   "what the pod had twice",
			before: `[{name: A, value: "1"}, {name: A, value: "2"}]`,
			after:  `[{name: A, value: "1"}, {name: A, value: "2"}, {name: B, value: "1"}, {name: B, value: "2"}]`,
			want:   `[{name: A, value: "1"}, {name: A, value: "2"}, {name: B, value: "2"}]`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, after := decode(t, "spec: {containers: [{name: c}]}"), decode(t, "spec: {initContainers: [{name: c, env: "+test.after+"}]}")
			if test.before != "" {
				before = decode(t, "spec: {containers: [{name: c, env: "+test.before+"}]}")
			}
			list := listAt(after)
			want := resolveVariables(list)
			_, err := KeepLast(PartsOf(before), PartsOf(after))
			if test.fail != "" {
				if err == nil || !bytes.Contains([]byte(err.Error()), []byte(test.fail)) {
					t.Fatalf("got the error %v, want one with %q", err, test.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := listAt(after)
			if wanted := listAt(decode(t, "spec: {initContainers: [{name: c, env: "+test.want+"}]}")); !Equal(got, wanted) {
				t.Errorf("got  %v\nwant %v", got, wanted)
			}
			if !sameValues(want, resolveVariables(got)) {
				t.Error("the container gets other values")
			}
		})
	}
}

func listAt(pod map[string]any) []any {
	list, _ := PartsOf(pod).Spec[InitContainers].([]any)
	c, _ := list[0].(map[string]any)
	env, _ := c["env"].([]any)
	return env
}

// TestKeepLastOfEveryList checks the lists beside the variables: by all fields of the key, and not where the API server rejects the pod.
func TestKeepLastOfEveryList(t *testing.T) {
	pod := decode(t, `
metadata: {finalizers: [a, b, a]}
spec:
  imagePullSecrets: [{name: a}, {name: b}, {name: a}]
  hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}]
  volumes: [{name: v}, {name: v}]
  containers:
  - name: c
    ports: [{containerPort: 80, name: a}, {containerPort: 80, protocol: UDP}, {containerPort: 80, protocol: TCP, name: b}]
    volumeMounts: [{name: v, mountPath: /v}, {name: w, mountPath: /v}]
`)
	want := decode(t, `
metadata: {finalizers: [b, a]}
spec:
  imagePullSecrets: [{name: b}, {name: a}]
  hostAliases: [{ip: 10.0.0.1, hostnames: [b]}]
  volumes: [{name: v}, {name: v}]
  containers:
  - name: c
    ports: [{containerPort: 80, protocol: UDP}, {containerPort: 80, protocol: TCP, name: b}]
    volumeMounts: [{name: v, mountPath: /v}, {name: w, mountPath: /v}]
`)
	dropped, err := KeepLast(Parts{}, PartsOf(pod))
	if err != nil {
		t.Fatal(err)
	}
	if !Equal(pod, want) {
		t.Errorf("got  %v\nwant %v", pod, want)
	}
	var fields string
	for _, d := range dropped {
		fields += d.Field + " " + d.Key + "\n"
	}
	const wantFields = "metadata.finalizers a\nspec.containers[0].ports 80/TCP\nspec.hostAliases 10.0.0.1\nspec.imagePullSecrets a\n"
	if fields != wantFields {
		t.Errorf("got %s\nwant %s", fields, wantFields)
	}
}

// TestListKeysAreCurrent checks that the generated keys are those of the Kubernetes types that the module has.
func TestListKeysAreCurrent(t *testing.T) {
	want, err := os.ReadFile("listkeys_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./gen", "-print")
	got, err := cmd.Output()
	if err != nil {
		t.Skipf("running the generator: %v", err)
	}
	if !bytes.Equal(got, want) {
		t.Error("listkeys_gen.go is not what the generator writes: go generate ./fn/podmap")
	}
}
