// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// linkerdInjector is a program made of Linkerd's code that answers as its injector does; see testdata/linkerd/README.md.
var linkerdInjector = flag.String("linkerd-injector", "", "program that answers as Linkerd's injector, to compare the stored answers with")

// linkerdVersions are the versions that the policy is compared with, the newest first: that is the one whose chart has the
// policy's own values.
var linkerdVersions = []string{"edge-26.8.3", "edge-25.10.7", "edge-25.4.4"}

// linkerdDocs has the table of differences.
const linkerdDocs = "../docs/injection-policy.md"

// linkerdAnswers are what one version of Linkerd's injector says.
type linkerdAnswers struct {
	Version string `json:"version"`
	// Values are those of linkerd-config of an installation without settings, as the injector reads them.
	Values map[string]any `json:"values"`
	// Answers are what it makes of the cases, by their names.
	Answers map[string]linkerdAnswer `json:"answers"`
}

// linkerdAnswer is a pod, or why it is refused.
type linkerdAnswer struct {
	Pod   map[string]any `json:"pod,omitempty"`
	Error string         `json:"error,omitempty"`
}

// linkerdDataFile returns the file with the answers of a version.
func linkerdDataFile(version string) string {
	return filepath.Join("testdata", "linkerd", version+".injector.json")
}

func readLinkerdAnswers(t *testing.T, version string) linkerdAnswers {
	t.Helper()
	text, err := os.ReadFile(linkerdDataFile(version))
	if err != nil {
		t.Fatal(err)
	}
	var out linkerdAnswers
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	plain := containersByName(out.Answers[plainCase].Pod)
	for name, answer := range out.Answers {
		for container, c := range containersByName(answer.Pod) {
			if name != plainCase && plain[container] != nil {
				expandContainer(c, plain[container])
			}
		}
	}
	return out
}

// plainCase is the case from which the others are written as differences, container by container.
const plainCase = "plain"

// containersByName returns the containers of a pod, to be changed in place.
func containersByName(pod map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	spec, _ := pod["spec"].(map[string]any)
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := spec[key].([]any)
		for _, e := range list {
			c := e.(map[string]any)
			out[c["name"].(string)] = c
		}
	}
	return out
}

// variablesByName returns the environment variables of a container.
func variablesByName(container map[string]any) map[string]any {
	out := map[string]any{}
	env, _ := container["env"].([]any)
	for _, v := range env {
		if v, ok := v.(map[string]any); ok {
			out[v["name"].(string)] = v
		}
	}
	return out
}

// shrinkContainer leaves what is not as in the plain container: fields that it has not are null, and a variable that is equal is
// only its name.
func shrinkContainer(c, plain map[string]any) {
	variables := variablesByName(plain)
	for key, value := range plain {
		if have, ok := c[key]; !ok {
			c[key] = nil
		} else if key != "name" && reflect.DeepEqual(have, value) {
			delete(c, key)
		}
	}
	env, _ := c["env"].([]any)
	for i, v := range env {
		if name := v.(map[string]any)["name"].(string); reflect.DeepEqual(v, variables[name]) {
			env[i] = name
		}
	}
}

// expandContainer takes back what shrinkContainer did.
func expandContainer(c, plain map[string]any) {
	variables := variablesByName(plain)
	env, _ := c["env"].([]any)
	for i, v := range env {
		if name, isName := v.(string); isName {
			env[i] = variables[name]
		}
	}
	for key, value := range plain {
		if have, ok := c[key]; !ok {
			c[key] = value
		} else if have == nil {
			delete(c, key)
		}
	}
}

// TestLinkerdInjector compares the policy with what Linkerd's own injectors make of the same pods. A case that differs says by
// which difference of the table in the docs.
func TestLinkerdInjector(t *testing.T) {
	docs, err := os.ReadFile(linkerdDocs)
	if err != nil {
		t.Fatal(err)
	}
	differs := map[string]bool{}
	for _, version := range linkerdVersions {
		answers := readLinkerdAnswers(t, version)
		if len(answers.Answers) != len(linkerdCases) {
			t.Errorf("%s: there are %d answers for %d cases", version, len(answers.Answers), len(linkerdCases))
		}
		equal := 0
		for name, tc := range linkerdCases {
			t.Run(version+"/"+name, func(t *testing.T) {
				want, ok := answers.Answers[name]
				if !ok {
					t.Fatal("Linkerd's answer is missing")
				}
				diff := linkerdDiff(t, tc, answers, want)
				if diff == "" {
					equal++
				} else {
					differs[name] = true
				}
				if diff != "" && tc.difference == "" {
					t.Errorf("-Linkerd +Prerig:\n%s", diff)
				}
				if tc.difference != "" && !bytes.Contains(docs, []byte("| "+tc.difference+" |")) {
					t.Errorf("%s has no row for %q", linkerdDocs, tc.difference)
				}
			})
		}
		t.Logf("%s: %d of %d equal", version, equal, len(linkerdCases))
	}
	for name, tc := range linkerdCases {
		if tc.difference != "" && !differs[name] && !t.Failed() {
			t.Errorf("%s: there is no difference any more: %s", name, tc.difference)
		}
	}
}

// TestLinkerdAnswers compares the stored answers with those of the program, or writes them anew.
func TestLinkerdAnswers(t *testing.T) {
	if *linkerdInjector == "" {
		t.Skip("no program: make linkerd INJECTOR=…")
	}
	cases := map[string]any{}
	for name, tc := range linkerdCases {
		pod := admittedPod(tc.template(t))
		pod["apiVersion"], pod["kind"] = "v1", "Pod"
		meta := pod["metadata"].(map[string]any)
		meta["name"], meta["namespace"] = "orders-0", "shop"
		cases[name] = map[string]any{"pod": pod, "namespace": fullAnnotations(tc.namespace), "values": tc.values, "trustAnchors": linkerdTrustAnchors,
			"owner": map[string]any{"kind": tc.workloadKind(), "name": "orders"}}
	}
	in, err := json.Marshal(map[string]any{"cases": cases})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), *linkerdInjector)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), io.Discard
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got linkerdAnswers
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(linkerdVersions, got.Version) {
		t.Fatalf("the program answers as %s, which is not one of %s", got.Version, strings.Join(linkerdVersions, ", "))
	}
	text := formatLinkerdAnswers(t, got)
	if *update {
		if err := os.WriteFile(linkerdDataFile(got.Version), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(linkerdDataFile(got.Version))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(text), "\n")); diff != "" {
		t.Errorf("-stored +Linkerd:\n%s", diff)
	}
}

// formatLinkerdAnswers writes one case a line, with containers as differences from those of the plain case.
func formatLinkerdAnswers(t *testing.T, answers linkerdAnswers) []byte {
	t.Helper()
	line := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"version\": %s,\n\"values\": %s,\n\"answers\": {", line(answers.Version), line(answers.Values))
	plain := containersByName(answers.Answers[plainCase].Pod)
	for i, name := range slices.Sorted(maps.Keys(answers.Answers)) {
		for container, c := range containersByName(answers.Answers[name].Pod) {
			if name != plainCase && plain[container] != nil {
				shrinkContainer(c, plain[container])
			}
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "\n%s: %s", line(name), line(answers.Answers[name]))
	}
	out.WriteString("\n}}\n")
	return out.Bytes()
}

const (
	tokenVolume = "kube-api-access-x7k2p"
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// admittedPod returns the pod as the API server hands it to webhooks: it has added the service account's token to each
// container before, as its admission plugin ServiceAccount does unless automountServiceAccountToken is false.
func admittedPod(pod map[string]any) map[string]any {
	spec := pod["spec"].(map[string]any)
	if spec["automountServiceAccountToken"] == false {
		return pod
	}
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := spec[key].([]any)
		for _, e := range list {
			c := e.(map[string]any)
			mounts, _ := c["volumeMounts"].([]any)
			c["volumeMounts"] = append(mounts, map[string]any{"name": tokenVolume, "mountPath": tokenPath, "readOnly": true})
		}
	}
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"name": tokenVolume, "projected": map[string]any{"sources": []any{}}})
	return pod
}

// linkerdPolicy returns a policy with the built-in sidecar for an installation of a version with the case's values.
func linkerdPolicy(t *testing.T, tc linkerdCase, answers linkerdAnswers) []byte {
	t.Helper()
	values := map[string]any{"dropAllCapabilities": false, "identityTrustAnchorsPEM": linkerdTrustAnchors}
	known := builtInValues(t, "linkerd")
	if answers.Version != linkerdVersions[0] {
		values = merge(values, knownValues(known, answers.Values))
	}
	values = merge(values, knownValues(known, tc.values))
	policy, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "linkerd"},
		"spec": map[string]any{"sidecars": []any{map[string]any{"builtIn": "linkerd", "values": values}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// knownValues returns the values that the policy has, too.
func knownValues(known, values map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range values {
		have, ok := known[key]
		if key == "identityTrustAnchorsPEM" || value == nil || !ok && len(known) > 0 {
			continue
		}
		haveMap, isMap := have.(map[string]any)
		valueMap, _ := value.(map[string]any)
		if isMap {
			value = knownValues(haveMap, valueMap)
		}
		out[key] = value
	}
	return out
}

// linkerdDiff says how the policy's pod differs from Linkerd's; it is empty where it does not. It also checks that injecting
// twice is injecting once, and that removing gives the input.
func linkerdDiff(t *testing.T, tc linkerdCase, answers linkerdAnswers, want linkerdAnswer) string {
	t.Helper()
	policy := linkerdPolicy(t, tc, answers)
	input := linkerdManifest(t, tc)
	out, results := apply(t, policy, input, v1alpha1.ModeInject)
	if refused := strings.Contains(results, "# error: "); refused || want.Error != "" {
		if refused && want.Error != "" {
			return ""
		}
		return "Linkerd: " + want.Error + "\nPrerig: " + results
	}
	if twice, _ := apply(t, policy, out, v1alpha1.ModeInject); !bytes.Equal(out, twice) {
		t.Errorf("injecting twice is not injecting once:\n%s", twice)
	}
	if back, _ := apply(t, policy, out, v1alpha1.ModeRemove); !bytes.Equal(input, back) {
		t.Errorf("removing does not give the input:\n%s", back)
	}
	var theirs corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Pod, &theirs); err != nil {
		t.Fatal(err)
	}
	ours := podOf(t, out, tc.workloadKind())
	delete(ours.Annotations, "sidecar.prerig.dev/linkerd")
	theirs.Name, theirs.Namespace, theirs.TypeMeta = "", "", ours.TypeMeta
	ours.Name, ours.Namespace = "", ""
	normalizeLinkerdPod(&ours)
	normalizeLinkerdPod(&theirs)
	return cmp.Diff(theirs, ours, cmpopts.EquateEmpty())
}

// linkerdManifest is the case's workload and its namespace.
func linkerdManifest(t *testing.T, tc linkerdCase) []byte {
	t.Helper()
	template := tc.template(t)
	workload := map[string]any{"apiVersion": "apps/v1", "kind": tc.workloadKind(), "metadata": map[string]any{"name": "orders", "namespace": "shop"},
		"spec": map[string]any{"template": template}}
	switch tc.workloadKind() {
	case "Pod":
		workload["apiVersion"], workload["spec"] = "v1", template["spec"]
		meta := template["metadata"].(map[string]any)
		meta["name"], meta["namespace"] = "orders", "shop"
		workload["metadata"] = meta
	case "Job":
		workload["apiVersion"] = "batch/v1"
	case "CronJob":
		workload["apiVersion"] = "batch/v1"
		workload["spec"] = map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
	}
	var out []byte
	for _, obj := range []map[string]any{tc.linkerdNamespace(), workload} {
		text, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, text...), "---\n"...)
	}
	return bytes.TrimSuffix(out, []byte("---\n"))
}

// podOf returns the pod of the last document.
func podOf(t *testing.T, manifests []byte, kind string) corev1.Pod {
	t.Helper()
	docs := bytes.Split(manifests, []byte("\n---\n"))
	var obj struct {
		corev1.Pod
		Spec json.RawMessage `json:"spec"`
	}
	if err := yaml.Unmarshal(docs[len(docs)-1], &obj); err != nil {
		t.Fatal(err)
	}
	var template struct {
		Template    corev1.PodTemplateSpec `json:"template"`
		JobTemplate struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	}
	var spec corev1.PodSpec
	if err := errors.Join(json.Unmarshal(obj.Spec, &template), json.Unmarshal(obj.Spec, &spec)); err != nil {
		t.Fatal(err)
	}
	pod := corev1.Pod{ObjectMeta: template.Template.ObjectMeta, Spec: template.Template.Spec}
	switch kind {
	case "Pod":
		pod = corev1.Pod{ObjectMeta: obj.ObjectMeta, Spec: spec}
	case "CronJob":
		pod = corev1.Pod{ObjectMeta: template.JobTemplate.Spec.Template.ObjectMeta, Spec: template.JobTemplate.Spec.Template.Spec}
	}
	return pod
}

// normalizeLinkerdPod takes out what is meant to be different in every pod: where new volumes and mounts stand among others,
// which Kubernetes gives no meaning; and the token that the API server mounts into the proxy, too, when the pod is made.
func normalizeLinkerdPod(pod *corev1.Pod) {
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == tokenVolume })
	slices.SortFunc(pod.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = slices.DeleteFunc(list[i].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == tokenVolume })
			slices.SortFunc(list[i].VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
		}
	}
}

// linkerdTrustAnchors are a text in the form of certificates, as the ConfigMap of the trust roots has it: without a line break
// at its end.
const linkerdTrustAnchors = "-----BEGIN CERTIFICATE-----\nMIIBizCCATGgAwIBAgIBATAKBggqhkjOPQQDAjAl\n-----END CERTIFICATE-----"

// TestLinkerdTrustRoot compares the digest with the one of Linkerd's own tests for the same anchors
// (cli/cmd/testdata/inject_emojivoto_deployment.golden.yml at edge-25.4.4). The line break at the end counts.
func TestLinkerdTrustRoot(t *testing.T) {
	const anchors = `-----BEGIN CERTIFICATE-----
MIIBwTCCAWagAwIBAgIQeDZp5lDaIygQ5UfMKZrFATAKBggqhkjOPQQDAjApMScw
JQYDVQQDEx5pZGVudGl0eS5saW5rZXJkLmNsdXN0ZXIubG9jYWwwHhcNMjAwODI4
MDcxMjQ3WhcNMzAwODI2MDcxMjQ3WjApMScwJQYDVQQDEx5pZGVudGl0eS5saW5r
ZXJkLmNsdXN0ZXIubG9jYWwwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARqc70Z
l1vgw79rjB5uSITICUA6GyfvSFfcuIis7B/XFSkkwAHU5S/s1AAP+R0TX7HBWUC4
uaG4WWsiwJKNn7mgo3AwbjAOBgNVHQ8BAf8EBAMCAQYwEgYDVR0TAQH/BAgwBgEB
/wIBATAdBgNVHQ4EFgQU5YtjVVPfd7I7NLHsn2C26EByGV0wKQYDVR0RBCIwIIIe
aWRlbnRpdHkubGlua2VyZC5jbHVzdGVyLmxvY2FsMAoGCCqGSM49BAMCA0kAMEYC
IQCN7lBFLDDvjx6V0+XkjpKERRsJYf5adMvnloFl48ilJgIhANtxhndcr+QJPuC8
vgUC0d2/9FMueIVMb+46WTCOjsqr
-----END CERTIFICATE-----
`
	const want = "8dc603abd4e755c25c94da05abbf29b9b283a784733651020d72f97ca8ab98e4"
	policy := linkerdPolicy(t, linkerdCase{values: map[string]any{"dropAllCapabilities": true}}, linkerdAnswers{Version: linkerdVersions[0]})
	p, err := v1alpha1.Parse(policy)
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Sidecars[0].Values["identityTrustAnchorsPEM"] = anchors
	if policy, err = yaml.Marshal(p); err != nil {
		t.Fatal(err)
	}
	out, results := apply(t, policy, linkerdManifest(t, linkerdCase{}), v1alpha1.ModeInject)
	pod := podOf(t, out, "Deployment")
	if got := pod.Annotations["linkerd.io/trust-root-sha256"]; got != want {
		t.Errorf("the digest is %q, not Linkerd's %s\n%s", got, want, results)
	}
	if len(pod.Spec.InitContainers) != 2 || !reflect.DeepEqual(pod.Spec.InitContainers[1].SecurityContext.Capabilities, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}) {
		t.Errorf("the proxy has capabilities: %+v", pod.Spec.InitContainers)
	}
}

// TestLinkerdWithIstio: where both are asked for, the cluster's webhooks are called by their names, Istio's
// istio-sidecar-injector first, and Linkerd's injector leaves a pod with istio-proxy alone.
func TestLinkerdWithIstio(t *testing.T) {
	var policy map[string]any
	if err := yaml.Unmarshal(linkerdPolicy(t, linkerdCase{}, linkerdAnswers{Version: linkerdVersions[0]}), &policy); err != nil {
		t.Fatal(err)
	}
	policy["spec"].(map[string]any)["istio"] = map[string]any{"injector": map[string]any{"builtIn": "istio"}}
	text, err := yaml.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	manifest := linkerdManifest(t, linkerdCase{labels: map[string]string{"sidecar.istio.io/inject": "true"}})
	out, results := apply(t, text, manifest, v1alpha1.ModeInject)
	if !bytes.Contains(out, []byte("name: istio-proxy")) || bytes.Contains(out, []byte("linkerd-proxy")) {
		t.Errorf("the pod has other proxies:\n%s", out)
	}
	const want = "sidecar linkerd skipped: the pod has the proxy istio-proxy already, and Linkerd's injector leaves such pods alone"
	if !strings.Contains(results, want) {
		t.Errorf("the results do not say why there is no proxy of Linkerd's:\n%s", results)
	}
	if twice, _ := apply(t, text, out, v1alpha1.ModeInject); !bytes.Equal(out, twice) {
		t.Errorf("injecting twice is not injecting once:\n%s", twice)
	}
	if back, _ := apply(t, text, out, v1alpha1.ModeRemove); !bytes.Equal(manifest, back) {
		t.Errorf("removing does not give the input:\n%s", back)
	}
}
