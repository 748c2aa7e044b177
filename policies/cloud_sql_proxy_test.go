// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
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
