// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
)

const (
	addsContainer = `[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "z", image: "z:1", ` +
		`ports: [Object.spec.containers.ports{containerPort: 80}]}}]`
	addsOnce = `object.spec.containers.exists(c, c.name == "z") ? [] : ` + addsContainer
	setsTier = `[JSONPatch{op: "add", path: "/metadata/labels/tier", value: "gold"}, JSONPatch{op: "add", path: "/spec/terminationGracePeriodSeconds", value: 40}]`
	web      = `# the application
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web} # as the selector
    spec:
      containers:
      - name: web
        image: "web:1"
`
)

// writing returns a policy that writes the changes of policies, and injects Istio's proxy if istio is true.
func writing(t *testing.T, policies string, istio bool) *v1alpha1.InjectionPolicy {
	t.Helper()
	text := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n"
	if istio {
		text += "  istio: {injector: {builtIn: istio}}\n  namespaces: [{name: shop, labels: {istio-injection: enabled}}]\n"
	}
	text += "  admission:\n    steps: {MutatingAdmissionPolicy: Write}\n    policies: |\n      " + strings.ReplaceAll(policies, "\n", "\n      ")
	p, err := v1alpha1.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inject runs a policy over a document, and returns its text and the errors.
func inject(t *testing.T, p *v1alpha1.InjectionPolicy, text string) (string, []string) {
	t.Helper()
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{p}, fn.WithAdmission(NewMutator().Evaluate))
	if err != nil {
		t.Fatal(err)
	}
	file, err := manifest.Parse("web.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	report, err := injector.Run(t.Context(), []fn.Item{{Doc: file.Docs[0], Path: "web.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	var errs []string
	for _, r := range report.Results {
		if r.Severity == result.Error {
			errs = append(errs, r.Message)
		}
	}
	return string(bytes.TrimSpace(report.Items[0].Doc.Raw())) + "\n", errs
}

// TestWritePolicies: what is written has no defaults in it, injecting again changes nothing, and removing restores every byte.
func TestWritePolicies(t *testing.T) {
	t.Parallel()
	for _, istio := range []bool{false, true} {
		p := writing(t, mutating("adds", "", addsOnce)+mutating("sets", "", setsTier), istio)
		written, errs := inject(t, p, web)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, want := range []string{"tier: gold", "terminationGracePeriodSeconds: 40", "image: z:1", "containerPort: 80", "# the application", "# as the selector"} {
			if !strings.Contains(written, want) {
				t.Errorf("istio %t: %q is not written:\n%s", istio, want, written)
			}
		}
		for _, absent := range []string{"terminationMessagePath", "resources: {}", "protocol: TCP", "dnsPolicy", "serviceAccount:", "tolerations"} {
			if !istio && strings.Contains(written, absent) {
				t.Errorf("istio %t: %q is written:\n%s", istio, absent, written)
			}
		}
		if istio != strings.Contains(written, "istio-proxy") {
			t.Errorf("istio %t: the proxy:\n%s", istio, written)
		}
		if again, errs := inject(t, p, written); again != written || len(errs) > 0 {
			t.Errorf("istio %t: the second injection changes it: %v\n%s", istio, errs, again)
		}
		p.Spec.Mode = v1alpha1.ModeRemove
		if back, errs := inject(t, p, written); back != web || len(errs) > 0 {
			t.Errorf("istio %t: removing does not restore it: %v\n%s", istio, errs, back)
		}
	}
}

// TestWriteNoGuess: what is not known, rejected, or decided by an order is an error, and the workload stays.
func TestWriteNoGuess(t *testing.T) {
	t.Parallel()
	label := func(value string) string {
		return `[JSONPatch{op: "add", path: "/metadata/labels/tier", value: "` + value + `"}]`
	}
	for want, policies := range map[string]string{
		"the order of MutatingAdmissionPolicies decides metadata.labels.tier": mutating("a", "", label("gold")) + mutating("b", "", label("tin")),
		"decides the order of list elements":                                  addingParameters("selector: {matchLabels: {tier: x}}"),
		"MutatingAdmissionPolicy a was not evaluated":                         mutating("a", "", `namespaceObject.metadata.labels["a"] == "b" ? [JSONPatch{op: "remove", path: "/spec/x"}] : []`),
		"denied request: JSON Patch: error in remove":                         mutating("a", "", `[JSONPatch{op: "remove", path: "/spec/none"}]`),
		"and not its policy a":                                                "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: {policyName: a}\n",
		"has no MutatingAdmissionPolicy with a binding":                       "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
		"undeclared reference":                                                mutating("a", "", `[JSONPatch{op: "add", path: nonsense, value: "b"}]`),
	} {
		text, errs := inject(t, writing(t, policies, false), web)
		if text != web || !slices.ContainsFunc(errs, func(message string) bool { return strings.Contains(message, want) }) {
			t.Errorf("%s: got %v\n%s", want, errs, text)
		}
	}
}

// TestWrittenAgain: the gate names what a cluster would change a second time.
func TestWrittenAgain(t *testing.T) {
	t.Parallel()
	for mutation, want := range map[string]string{
		addsContainer: "spec.containers[z#2].image, spec.containers[z#2].imagePullPolicy, spec.containers[z#2].name and 5 more fields",
		addsOnce:      "",
		setsTier:      "",
	} {
		p := writing(t, mutating("a", "", mutation), true)
		written, errs := inject(t, p, web)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		found := checkText(t, p, written)
		if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || !strings.Contains(found[0], "MutatingAdmissionPolicy a are written") || !strings.Contains(found[0], want)) {
			t.Errorf("%s: want %q, got %v", mutation, want, found)
		}
	}
}

// checkText returns the findings of the gate about written changes.
func checkText(t *testing.T, p *v1alpha1.InjectionPolicy, text string) (messages []string) {
	t.Helper()
	file, err := manifest.Parse("web.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := gate.ReadDocument(file.Docs[0], file.Docs[0], "web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	options := gate.Options{SkipSchemas: true}
	options.AddPolicies([]*v1alpha1.InjectionPolicy{p})
	found, err := Check(context.Background(), objects, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		if r.Tags[result.TagCode] == gate.CodeWrittenAgain {
			messages = append(messages, r.Message)
		}
	}
	return messages
}

// TestIgnoredSteps: prerig admit leaves them out.
func TestIgnoredSteps(t *testing.T) {
	t.Parallel()
	cluster := "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Container, default: {cpu: 1}}]}}\n---\n" +
		mutating("sets", "", setsTier)
	policy := `{apiVersion: prerig.dev/v1alpha1, kind: InjectionPolicy, metadata: {name: mesh}, spec: {istio: {injector: {builtIn: istio}}, ` +
		`namespaces: [{name: shop, labels: {istio-injection: enabled}}], admission: {steps: {STEPS}}}}`
	admitWith := func(steps string) render.AdmittedPod {
		request := &render.AdmitRequest{Catalog: documentsOf(t, "cluster.yaml", cluster)}
		request.Groups = []render.AdmitGroup{{Documents: documentsOf(t, "k8s.yaml", plainPod), Policies: [][]byte{[]byte(strings.Replace(policy, "STEPS", steps, 1))}}}
		admitted, err := Admit(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return admitted.Pods[0]
	}
	for steps, want := range map[string][3]bool{
		"":                                 {true, true, true},
		"webhook: Predict":                 {true, true, true},
		"webhook: Ignore":                  {true, true, false},
		"LimitRanger: Ignore":              {false, true, true},
		"MutatingAdmissionPolicy: Ignore":  {true, false, true},
		"MutatingAdmissionPolicy: Predict": {true, true, true},
	} {
		pod := admitWith(steps).Pod
		containers, _ := podField(pod, "spec", "containers").([]any)
		first, _ := containers[0].(map[string]any)
		got := [3]bool{
			podField(first, "resources", "limits", "cpu") != nil, podField(pod, "metadata", "labels", "tier") != nil,
			podField(pod, "metadata", "annotations", statusAnnotation) != nil,
		}
		if got != want {
			t.Errorf("%q: limits, label and proxy are %v, want %v", steps, got, want)
		}
	}
}
