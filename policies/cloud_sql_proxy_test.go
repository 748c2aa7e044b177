// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/policies"
)

// TestCloudSQLSocketRefused has sockets that cannot be shared between the proxy and the app.
func TestCloudSQLSocketRefused(t *testing.T) {
	policy, _ := policies.Get("cloud-sql-proxy")
	for name, tc := range map[string]struct{ instance, mount, want string }{
		"socket at the root": {instance: "a:b:c?unix-socket-path=/db", want: "has to be in a directory"},
		"relative socket":    {instance: "a:b:c?port=1&unix-socket-path=run/db", want: "has to be in a directory"},
		"directory itself":   {instance: "a:b:c?unix-socket=/", want: "has to be in a directory"},
		"app's own volume":   {instance: "a:b:c?unix-socket-path=/run/db/c", mount: "/run/db", want: "the container app has a volume of its own at /run/db"},
	} {
		t.Run(name, func(t *testing.T) {
			mounts := "[]"
			if tc.mount != "" {
				mounts = fmt.Sprintf("[{name: own, mountPath: %s}]", tc.mount)
			}
			input := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {cloud-sql-proxy.prerig.dev/instances: "%s"}}
spec: {containers: [{name: app, image: a, volumeMounts: %s}], volumes: [{name: own, emptyDir: {}}]}
`, tc.instance, mounts)
			out, results := apply(t, policy, []byte(input), v1alpha1.ModeInject)
			if !strings.Contains(results, "# error: ") || !strings.Contains(results, tc.want) {
				t.Errorf("no error with %q: %s", tc.want, results)
			}
			if string(out) != input {
				t.Errorf("the pod was changed: %s", out)
			}
		})
	}
}

// TestCloudSQLVariables: variables that the app takes from elsewhere are set to the proxy's, and come back.
func TestCloudSQLVariables(t *testing.T) {
	policy, _ := policies.Get("cloud-sql-proxy")
	const input = `apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {cloud-sql-proxy.prerig.dev/instances: "a:b:c", cloud-sql-proxy.prerig.dev/host-env: DB_HOST, cloud-sql-proxy.prerig.dev/port-env: DB_PORT, cloud-sql-proxy.prerig.dev/port: "5432"}}
spec:
  containers:
  - name: app
    image: a
    env:
    - {name: DB_HOST, valueFrom: {configMapKeyRef: {key: host, name: db}}}
    - {name: DB_PORT, valueFrom: {configMapKeyRef: {key: port, name: db}}}
    - {name: DB_USER, valueFrom: {configMapKeyRef: {key: user, name: db}}}
`
	out, difference := injectAndBack(t, policy, []byte(input), "", "")
	if difference != "" {
		t.Fatal(difference)
	}
	for _, want := range []string{"- {name: DB_HOST, value: 127.0.0.1}\n", "- {name: DB_PORT, value: \"5432\"}\n", "- {name: DB_USER, valueFrom: {configMapKeyRef: {key: user, name: db}}}\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// TestCloudSQLRenamedContainer: a container that was renamed since keeps the socket when it is injected again, and loses it with the proxy.
func TestCloudSQLRenamedContainer(t *testing.T) {
	policy, _ := policies.Get("cloud-sql-proxy")
	input := []byte(`apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {cloud-sql-proxy.prerig.dev/instances: "a:b:c?unix-socket-path=/run/db/c"}}
spec: {containers: [{name: app, image: a}]}
`)
	renamed := func(text []byte) []byte {
		return bytes.Replace(text, []byte("{name: app,"), []byte("{name: front,"), 1)
	}
	out, _ := apply(t, policy, input, v1alpha1.ModeInject)
	again, results := apply(t, policy, renamed(out), v1alpha1.ModeInject)
	if strings.Contains(results, "# error: ") || !strings.Contains(string(again), "{name: front, image: a, volumeMounts: [{name: cloud-sql-proxy-socket-0, mountPath: /run/db}]}") {
		t.Errorf("injected again:\n%s\n%s", again, results)
	}
	for _, injected := range [][]byte{renamed(out), again} {
		if back, _ := apply(t, policy, injected, v1alpha1.ModeRemove); !bytes.Equal(back, renamed(input)) {
			t.Errorf("removal gives\n%s", back)
		}
	}
}
