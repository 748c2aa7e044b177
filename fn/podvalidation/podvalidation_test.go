// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podvalidation_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/podvalidation"
)

// TestDevicesAndResizePolicies has what API servers of 1.36 reject of block devices and of in-place resize.
func TestDevicesAndResizePolicies(t *testing.T) {
	const claim = "  volumes: [{name: block, persistentVolumeClaim: {claimName: c}}, {name: scratch, emptyDir: {}}]\n"
	for name, c := range map[string]struct {
		spec  string
		minor int
		want  string // part of the only message; empty for none
	}{
		"a device":                        {claim + "  containers: [{name: a, image: x, volumeDevices: [{name: block, devicePath: /dev/b}]}]", 0, ""},
		"a device without its volume":     {"  containers: [{name: a, image: x, volumeDevices: [{name: block, devicePath: /dev/b}]}]", 0, "no such volume"},
		"a device that is no claim":       {claim + "  containers: [{name: a, image: x, volumeDevices: [{name: scratch, devicePath: /dev/b}]}]", 0, "is no device"},
		"a device at the path of a mount": {claim + "  containers: [{name: a, image: x, volumeMounts: [{name: scratch, mountPath: /d}], volumeDevices: [{name: block, devicePath: /d}]}]", 0, "that of a mount"},
		"a device that is mounted":        {claim + "  containers: [{name: a, image: x, volumeMounts: [{name: block, mountPath: /m}], volumeDevices: [{name: block, devicePath: /d}]}]", 0, "already mounted"},
		"a device of an init container":   {"  initContainers: [{name: i, image: x, volumeDevices: [{name: block, devicePath: /dev/b}]}]\n  containers: [{name: a, image: x}]", 0, "no such volume"},
		"a restart at resize":             {"  containers: [{name: a, image: x, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]", 0, ""},
		"a restart in a pod that may not": {"  restartPolicy: Never\n  containers: [{name: a, image: x, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]", 0, "NotRequired"},
		"the same before 1.33":            {"  restartPolicy: Never\n  containers: [{name: a, image: x, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]", 32, ""},
		"a restart of an init container":  {"  initContainers: [{name: i, image: x, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]\n  containers: [{name: a, image: x}]", 0, "init container"},
		"a restart of a native sidecar":   {"  initContainers: [{name: i, image: x, restartPolicy: Always, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]\n  containers: [{name: a, image: x}]", 0, ""},
		"a resource twice":                {"  containers: [{name: a, image: x, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: cpu, restartPolicy: NotRequired}]}]", 0, "twice"},
		"a resource that cannot change":   {"  containers: [{name: a, image: x, resizePolicy: [{resourceName: gpu, restartPolicy: NotRequired}]}]", 0, "neither cpu nor memory"},
	} {
		var pod map[string]any
		if err := yaml.Unmarshal([]byte("spec:\n"+c.spec), &pod); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found := podvalidation.Check(pod, podvalidation.Options{Minor: c.minor})
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("%s: %v", name, found)
		case c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Message, c.want)):
			t.Errorf("%s: %v, want one with %q", name, found, c.want)
		}
	}
}

// TestHiddenProblemsOfProbes has pods whose probes an injection replaces by its own.
func TestHiddenProblemsOfProbes(t *testing.T) {
	const after = "{readinessProbe: {httpGet: {port: 15020}}, lifecycle: {preStop: {httpGet: {port: 15020}}}, name: a, image: x}"
	for before, want := range map[string]string{
		`{readinessProbe: {httpGet: {port: "8080"}}, name: a, image: x}`:                   "is a number in quotes, which is a name; remove the quotes",
		`{readinessProbe: {tcpSocket: {port: 70000}}, name: a, image: x}`:                  "is not between 1 and 65535",
		`{lifecycle: {preStop: {httpGet: {port: "80"}}}, name: a, image: x}`:               "of the preStop is a number in quotes",
		`{readinessProbe: {httpGet: {port: http}}, name: a, image: x}`:                     "",
		`{readinessProbe: {httpGet: {port: 8080}}, name: a}`:                               "",
		`{readinessProbe: {httpGet: {port: 8080}}, name: a, image: x, ports: [{name: A}]}`: "",
	} {
		var pods [2]map[string]any
		for i, text := range []string{before, after} {
			if err := yaml.Unmarshal([]byte("spec: {containers: ["+text+"]}"), &pods[i]); err != nil {
				t.Fatal(err)
			}
		}
		problems := podvalidation.Hidden(pods[0], pods[1], podvalidation.Options{})
		if len(problems) != min(1, len(want)) || len(problems) == 1 && !strings.Contains(problems[0].Message, want) {
			t.Errorf("%s: have %v, want %q", before, problems, want)
		}
	}
}
