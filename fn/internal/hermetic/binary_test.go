// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package hermetic

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prerig/prerig/internal/testprograms"
)

// inCI says that what the machine lacks fails a test instead of skipping it.
var inCI = os.Getenv("CI") != ""

// build builds prerig-fn once, as it is released.
var build = sync.OnceValues(func() (string, error) { return testprograms.Build(testprograms.PrerigFn) })

// built returns the binary's path.
func built(t *testing.T) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, testprograms.PrerigFn.Name)
}

// ran is what a run of the binary gave.
type ran struct {
	stdout, stderr string
	exit           int
}

// surroundings are what a run of the binary could see besides its input.
type surroundings struct {
	env []string
	dir string
}

// run runs the binary, or a program that runs it, on an input.
func run(t *testing.T, input []byte, s surroundings, args ...string) ran {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = append([]string{}, s.env...), s.dir
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// own are inputs that are always there; those of the corpus come to them where it is there.
var own = map[string]string{
	"a Deployment": `apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: prerig.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: mesh}
  spec:
    istio: {injector: {builtIn: istio}}
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec:
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers:
        - name: web
          image: registry.example.com/web:1
          ports: [{name: http, containerPort: 8080}]
          readinessProbe: {httpGet: {path: /ready, port: http}}
`,
	"a policy with a typo": `apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: prerig.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: mesh}
  spec:
    istioo: {}
items: []
`,
	"a template that asks for the environment and the clock": `apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: prerig.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: mesh}
  spec:
    istio:
      version: "1.20"
      injector:
        config: |
          policy: enabled
          defaultTemplates: [sidecar]
          templates:
            sidecar: |
              spec:
                containers:
                - name: istio-proxy
                  image: {{ env "HOME" "unset" }}
        values: '{"global": {"hub": "example.com", "tag": "1.20.0"}}'
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: shop}
  spec: {containers: [{name: web, image: registry.example.com/web:1}]}
`,
	"no policy":  "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n",
	"no YAML":    "\x00\x01\x02",
	"no input":   "",
	"not a list": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n",
}
