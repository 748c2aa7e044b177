// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// linkerdVersions are the versions that the policy is compared with, the newest first: that is the one whose chart has the
// policy's own values.
var linkerdVersions = []string{"edge-26.8.3", "edge-25.10.7", "edge-25.4.4"}

// TestLinkerdInjector compares the policy with what Linkerd's own injectors make of the same pods. A case that differs says by
// which difference of the table in the docs.
func TestLinkerdInjector(t *testing.T) {
	docs, err := os.ReadFile(differencesDocs)
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
					t.Errorf("%s has no row for %q", differencesDocs, tc.difference)
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
func linkerdDiff(t *testing.T, tc linkerdCase, answers linkerdAnswers, want injectorAnswer) string {
	t.Helper()
	policy := linkerdPolicy(t, tc, answers)
	input := linkerdManifest(t, tc)
	out, difference := injectAndBack(t, policy, input, "Linkerd", want.Error)
	if out == nil {
		return difference
	}
	var theirs corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Pod, &theirs); err != nil {
		t.Fatal(err)
	}
	ours := podOf(t, out, tc.workloadKind())
	delete(ours.Annotations, "sidecar.prerig.dev/linkerd")
	theirs.Name, theirs.Namespace, theirs.TypeMeta = "", "", ours.TypeMeta
	ours.Name, ours.Namespace = "", ""
	for _, pod := range []*corev1.Pod{&ours, &theirs} {
		dropToken(pod)
		sortVolumes(pod)
	}
	return cmp.Diff(theirs, ours, cmpopts.EquateEmpty())
}

// linkerdManifest is the case's workload and its namespace.
func linkerdManifest(t *testing.T, tc linkerdCase) []byte {
	t.Helper()
	return marshalStream(t, tc.linkerdNamespace(), workloadOf(tc.workloadKind(), nil, tc.template(t)))
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

// TestLinkerdWebhook: pods for which the webhook is not called, by proxyInjector.namespaceSelector and objectSelector of
// the chart (charts/linkerd-control-plane/values.yaml at edge-26.8.3).
func TestLinkerdWebhook(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, nsLabels, podLabels string
		want                           string
	}{
		"control plane":      {"shop", "{}", "{linkerd.io/control-plane-component: destination}", "it is of Linkerd itself"},
		"CNI plugin":         {"shop", "{}", "{linkerd.io/cni-resource: 'true'}", "it is of Linkerd itself"},
		"namespace disabled": {"shop", "{config.linkerd.io/admission-webhooks: disabled}", "{}", "admission-webhooks is disabled"},
		"kube-system":        {"kube-system", "{}", "{}", "not called in the namespace kube-system"},
		"cert-manager":       {"cert-manager", "{}", "{}", "not called in the namespace cert-manager"},
		"called":             {"shop", "{config.linkerd.io/admission-webhooks: other}", "{}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			input := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: %s}\n---\n"+
				"apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: %s, labels: %s, annotations: {linkerd.io/inject: enabled}}\n"+
				"spec: {containers: [{name: web, image: i}]}\n", tc.namespace, tc.nsLabels, tc.namespace, tc.podLabels)
			out, results := apply(t, linkerdPolicy(t, linkerdCase{}, linkerdAnswers{Version: linkerdVersions[0]}), []byte(input), v1alpha1.ModeInject)
			if injected := bytes.Contains(out, []byte("name: linkerd-proxy")); injected != (tc.want == "") {
				t.Errorf("injected: %v\n%s", injected, results)
			}
			if !strings.Contains(results, tc.want) {
				t.Errorf("the results do not say %q:\n%s", tc.want, results)
			}
		})
	}
}
