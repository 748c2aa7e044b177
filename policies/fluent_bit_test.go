// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/policies"
)

// refused sees that a policy refuses a pod with a message, and leaves it as it is.
func refused(t *testing.T, policy []byte, input, want string) {
	t.Helper()
	out, results := apply(t, policy, []byte(input), v1alpha1.ModeInject)
	if !strings.Contains(results, "# error: ") || !strings.Contains(results, want) {
		t.Errorf("no error with %q: %s", want, results)
	}
	if string(out) != input {
		t.Errorf("the pod was changed: %s", out)
	}
}

// TestOwnMountRefused: a volume of the app's own where a sidecar's is to be mounted is not lost.
func TestOwnMountRefused(t *testing.T) {
	for name, tc := range map[string]struct{ policy, annotations, mount, want string }{
		"fluent-bit": {policy: "{builtIn: fluent-bit}", annotations: "fluent-bit.prerig.dev/paths: /var/log/app/*.log", mount: "/var/log/app",
			want: "the container web has the volume own of its own at /var/log/app; name it in fluent-bit.prerig.dev/volume, or choose another directory in fluent-bit.prerig.dev/directory"},
		"vault-agent": {policy: "{builtIn: vault-agent, values: {address: 'https://vault.example.com'}}", mount: "/etc/app",
			annotations: `vault.hashicorp.com/agent-inject: "true", vault.hashicorp.com/role: a, vault.hashicorp.com/agent-inject-secret-db: a/b, vault.hashicorp.com/secret-volume-path: /etc/app`,
			want:        "spec.containers[0].volumeMounts[0]: the container web already mounts the volume own at /etc/app, where the sidecar vault-agent mounts vault-secrets; choose another path"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {sidecars: [" + tc.policy + "]}\n"
			refused(t, []byte(policy), fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {%s}}
spec:
  containers: [{name: web, image: a, volumeMounts: [{name: own, mountPath: %s, subPath: x}, {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]}]
  volumes: [{name: own, persistentVolumeClaim: {claimName: audit}}, {name: token, emptyDir: {}}]
`, tc.annotations, tc.mount), tc.want)
		})
	}
}

// fluentBitPod is a workload whose pod template has annotations and a spec.
func fluentBitPod(kind, annotations, spec string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: web, namespace: shop}\nspec: {template: {metadata: {annotations: {%s}}, spec: %s}}\n", kind, annotations, spec)
}

// TestFluentBitVolume: the volume of the annotation is one that the finished pod has, wherever it comes from.
func TestFluentBitVolume(t *testing.T) {
	const annotations = `fluent-bit.prerig.dev/inject: "true", fluent-bit.prerig.dev/volume: logs`
	const other = "{name: other, select: {default: Inject}, template: 'spec: {volumes: [{name: logs, emptyDir: {}}]}'}"
	const bare = "{containers: [{name: a, image: a}]}"
	policy := func(sidecars string) []byte {
		return []byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {sidecars: [" + sidecars + "]}\n")
	}
	alone := policy("{builtIn: fluent-bit}")
	refused(t, alone, fluentBitPod("Deployment", annotations, "{containers: [{name: a, image: a}], volumes: [{name: log, emptyDir: {}}]}"),
		"spec.template.spec.volumes: the container fluent-bit of the sidecar fluent-bit mounts the volume logs at /var/log/app, and the pod has no such volume")
	claim := strings.Replace(fluentBitPod("StatefulSet", annotations, bare), "spec: {template", "spec: {volumeClaimTemplates: [{metadata: {name: logs}}], template", 1)
	for name, tc := range map[string]struct {
		policy []byte
		input  string
	}{
		"own":              {alone, fluentBitPod("Deployment", annotations, "{containers: [{name: a, image: a}], volumes: [{name: logs, emptyDir: {}}]}")},
		"claim":            {alone, claim},
		"mounted":          {alone, fluentBitPod("StatefulSet", annotations, "{containers: [{name: a, image: a, volumeMounts: [{name: logs, mountPath: /logs}]}]}")},
		"earlier sidecar":  {policy(other + ", {builtIn: fluent-bit}"), fluentBitPod("Deployment", annotations, bare)},
		"later sidecar":    {policy("{builtIn: fluent-bit}, " + other), fluentBitPod("Deployment", annotations, bare)},
		"no volume at all": {alone, fluentBitPod("Deployment", `fluent-bit.prerig.dev/inject: "true"`, bare)},
	} {
		out, results := apply(t, tc.policy, []byte(tc.input), v1alpha1.ModeInject)
		if strings.Contains(results, "# error: ") || strings.Contains(results, "# warning: ") || !strings.Contains(string(out), "name: fluent-bit,") && !strings.Contains(string(out), "name: fluent-bit\n") {
			t.Errorf("%s: %s\n%s", name, results, out)
		}
	}
}

// TestFluentBitTags: a field has the whole value of its tag, by the rules of the filter modify, which splits what it adds by blanks.
func TestFluentBitTags(t *testing.T) {
	policy, _ := policies.Get("fluent-bit")
	const annotations = `fluent-bit.prerig.dev/inject: "true", fluent-bit.prerig.dev/tag-team: `
	for value, want := range map[string]string{
		"payments":       `"team payments"`,
		`C:\logs`:        `"team C:\\logs"`,
		`5" disk`:        `"team \"5\\\" disk\""`,
		"payments eu":    `"team \"payments eu\""`,
		`C:\logs and so`: `"team \"C:\\\\logs and so\""`,
		`"quoted"`:       `"team \"\\\"quoted\\\"\""`,
		"'quoted'":       `"team \"'quoted'\""`,
		" ":              `"team \" \""`,
		"two\nlines":     `"team \"two\nlines\""`,
	} {
		input := fluentBitPod("Deployment", annotations+strconv.Quote(value), "{containers: [{name: a, image: a}]}")
		out, results := apply(t, policy, []byte(input), v1alpha1.ModeInject)
		file, err := manifest.Parse("out.yaml", out)
		if err != nil || len(file.Docs) != 2 {
			t.Fatalf("%q: %v, %s", value, err, results)
		}
		configMap, err := file.Docs[1].Object()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := configMap["data"].(map[string]any)["fluent-bit.yaml"].(string)
		var config struct {
			Pipeline struct{ Filters []struct{ Add string } }
		}
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		if got := strconv.Quote(config.Pipeline.Filters[0].Add); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
	refused(t, policy, fluentBitPod("Deployment", annotations+`""`, "{containers: [{name: a, image: a}]}"), `metadata.annotations["fluent-bit.prerig.dev/tag-team"]: "" does not match`)
}

// TestFluentBitConfigMap: workloads of one name can each have a ConfigMap, of another name.
func TestFluentBitConfigMap(t *testing.T) {
	policy, _ := policies.Get("fluent-bit")
	const spec = "{containers: [{name: a, image: a}]}"
	deployment := fluentBitPod("Deployment", "fluent-bit.prerig.dev/paths: /var/log/app/a.log", spec) + "---\n"
	_, results := apply(t, policy, []byte(deployment+fluentBitPod("StatefulSet", "fluent-bit.prerig.dev/paths: /var/log/app/b.log", spec)), v1alpha1.ModeInject)
	if !strings.Contains(results, "both add it, and differently") || !strings.Contains(results, "such as fluent-bit.prerig.dev/config-map") {
		t.Errorf("the error does not say what to do: %s", results)
	}
	input := deployment + fluentBitPod("StatefulSet", "fluent-bit.prerig.dev/paths: /var/log/app/b.log, fluent-bit.prerig.dev/config-map: web-logs", spec)
	out, difference := injectAndBack(t, policy, []byte(input), "", "")
	if difference != "" {
		t.Fatal(difference)
	}
	for _, name := range []string{"web-fluent-bit", "web-logs"} {
		if !strings.Contains(string(out), "{name: fluent-bit-config, configMap: {name: "+name+"}}") || !strings.Contains(string(out), "\n  name: "+name+"\n") {
			t.Errorf("no ConfigMap %s that a pod mounts in\n%s", name, out)
		}
	}
	refused(t, policy, fluentBitPod("Deployment", `fluent-bit.prerig.dev/inject: "true", fluent-bit.prerig.dev/config-map: Logs`, spec), "does not match")
}
