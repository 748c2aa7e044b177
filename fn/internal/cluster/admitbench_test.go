// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// admissionGroup is the API group of policies.
const admissionGroup = "admissionregistration.k8s.io"

// leastSets is how many namespaces with policies are made up at least.
const leastSets = 40

// admitBench is a cluster with made-up namespaces, policies, LimitRanges, accounts and classes.
type admitBench struct {
	*Cluster

	program string
	seed    int
	maker   *admitMaker
	sets    []admitSet
	// policy is the InjectionPolicy that stands for istiod, or "".
	policy string
}

// mutatingVersions are the versions of MutatingAdmissionPolicy that minors serve; others serve v1. They are off there by default.
var mutatingVersions = map[string]string{"1.32": "v1alpha1", "1.34": "v1beta1"}

// mutatingVersion is the one of the chosen minor.
func mutatingVersion() string {
	if version := mutatingVersions[os.Getenv(chosenKubernetes)]; version != "" {
		return version
	}
	return "v1"
}

// newAdmitBench starts a cluster with namespaces.
func newAdmitBench(t *testing.T, namespaces int) *admitBench {
	t.Helper()
	if os.Getenv("PRERIG_CLUSTER") == "" {
		t.Skip("PRERIG_CLUSTER is not set; make e2e-admit runs this")
	}
	if os.Getenv(chosenKubernetes) == "1.30" {
		t.Skip("Kubernetes 1.30 has no MutatingAdmissionPolicies")
	}
	options := Options{AdmissionPlugins: []string{"PodNodeSelector"}, WithoutControllers: true}
	if version := mutatingVersion(); version != "v1" {
		options.APIServerFlags = []string{"--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=" + admissionGroup + "/" + version + "=true"}
	}
	b := &admitBench{seed: setting(t, "PRERIG_ADMIT_SEED", 1), program: builtPrerig(t)}
	b.Cluster = started(t, programs(t, "etcd", apiServer, "pilot-discovery", "charts"), options)
	b.maker = &admitMaker{Rand: rand.New(rand.NewPCG(uint64(b.seed), 0)), version: mutatingVersion()} //nolint:gosec // made-up input
	for _, o := range classes() {
		if _, err := b.Create(t.Context(), converted(t, o)); err != nil {
			t.Fatalf("%s %v: %v", o["kind"], o["metadata"], err)
		}
	}
	for range namespaces {
		s := b.maker.set()
		b.createAll(t, s.objects)
		b.sets = append(b.sets, s)
	}
	b.awaitMutation(t, "mark")
	return b
}

// createAll creates objects, but for policies that the API server does not take.
func (b *admitBench) createAll(t *testing.T, objects []map[string]any) {
	t.Helper()
	for _, o := range objects {
		_, err := b.Create(t.Context(), converted(t, o))
		switch {
		case apierrors.IsInvalid(err): // a policy that does not compile, for example
			t.Logf("left out: %v", err)
		case err != nil:
			t.Fatalf("%s %v: %v", o["kind"], o["metadata"], err)
		}
	}
}

// converted returns an object as the API's decoder makes it.
func converted(t *testing.T, o map[string]any) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return out
}

// draw makes up pods in the namespaces.
func (b *admitBench) draw(n int) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range n {
		s := b.sets[i%len(b.sets)]
		b.maker.pods++
		out = append(out, newUnstructuredObject(b.maker.pod(s.namespace, fmt.Sprintf("%s-%d", s.namespace, b.maker.pods))))
	}
	return out
}

// each runs a function for each index, several at once.
func (b *admitBench) each(t *testing.T, n int, do func(i int)) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error { do(i); return nil })
	}
	_ = group.Wait()
}

// installIstio installs Istio, and imports the policy that stands for its webhook.
func (b *admitBench) installIstio(t *testing.T) {
	t.Helper()
	if err := b.addNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Istio's webhook is asked about a pod of this namespace, whose service account a controller would make.
	if err := b.AddNamespace(t.Context(), "default", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.InstallIstio(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	prerig, err := Import(t.Context(), b.Cluster, b.program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b.policy = prerig.Policy
}

// capture has prerig capture write what it reads of the cluster into a directory.
func (b *admitBench) capture(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	if out, err := exec.CommandContext(t.Context(), b.program, "capture", "--kubeconfig", b.Kubeconfig, "--to", dir).CombinedOutput(); err != nil {
		t.Fatalf("prerig capture: %v\n%s", err, out)
	}
	return dir
}

// admit runs prerig admit over pods, with the objects of a directory.
func (b *admitBench) admit(t *testing.T, cluster string, pods []*unstructured.Unstructured) []admitted {
	t.Helper()
	var texts []string
	for _, pod := range pods {
		one, err := pod.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(one))
	}
	return b.admitTexts(t, cluster, texts, "--why", "--as", "administrator", "--as-group", "system:masters")
}

// admitTexts runs prerig admit over documents that have one pod each.
func (b *admitBench) admitTexts(t *testing.T, cluster string, texts []string, flags ...string) []admitted {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(texts, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"admit", "-o", "json", "--pod-node-selector", "--cluster", cluster}, flags...)
	if b.policy != "" {
		args = append(args, "-p", b.policy)
	} else {
		args = append(args, "--as-is")
	}
	command := exec.CommandContext(t.Context(), b.program, append(args, file)...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil && command.ProcessState.ExitCode() != 1 {
		t.Fatalf("prerig admit: %v\n%s", err, errs.String())
	}
	var answers []admitted
	if err := json.Unmarshal(out.Bytes(), &answers); err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(texts) {
		t.Fatalf("%d answers for %d pods\n%s", len(answers), len(texts), errs.String())
	}
	return answers
}

// awaitMutation waits until the API server evaluates the mutating policies that exist. name has not been used before.
func (b *admitBench) awaitMutation(t *testing.T, name string) {
	t.Helper()
	for _, o := range []map[string]any{
		object(b.maker.mutatingAPI(), "MutatingAdmissionPolicy", "", name, map[string]any{"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"configmaps"}, "resourceNames": []any{name},
			}}},
			"reinvocationPolicy": "Never",
			"mutations": []any{map[string]any{"patchType": apply, "applyConfiguration": map[string]any{
				"expression": `Object{metadata: Object.metadata{labels: {"marked": "yes"}}}`,
			}}},
		}}),
		object(b.maker.mutatingAPI(), "MutatingAdmissionPolicyBinding", "", name, map[string]any{"spec": map[string]any{"policyName": name}}),
	} {
		if _, err := b.Create(t.Context(), converted(t, o)); err != nil {
			t.Fatal(err)
		}
	}
	probe := newUnstructuredObject(object("v1", "ConfigMap", "", name, nil))
	err := b.pollUntilReady(t.Context(), func(ctx context.Context) error {
		found, err := b.Try(ctx, probe)
		if err == nil && found.GetLabels()["marked"] == "" {
			return fmt.Errorf("the policy %s is not evaluated yet", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
