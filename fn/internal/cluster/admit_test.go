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
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// completeKinds are those of which prerig admit gets all objects of the cluster.
var completeKinds = []string{
	"Namespace", "ServiceAccount", "LimitRange", "ResourceQuota", "PriorityClass", "RuntimeClass", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "ConfigMap", "CustomResourceDefinition",
}

// admitted is an answer of prerig admit.
type admitted struct {
	Pod      map[string]any `json:"pod"`
	Rejected string         `json:"rejected"`
	Missing  []string       `json:"missing"`
	Reasons  []struct {
		Field string `json:"field"`
		Step  string `json:"step"`
	} `json:"reasons"`
}

// TestAdmitIsTheAPIServers compares the pods that prerig admit prints with those that an API server returns from a dry run,
// in made-up namespaces with policies, LimitRanges, accounts and classes. PRERIG_ADMIT_N and PRERIG_ADMIT_SEED choose others.
func TestAdmitIsTheAPIServers(t *testing.T) {
	if os.Getenv("PRERIG_ADMIT") == "" {
		t.Skip("PRERIG_ADMIT is not set; make e2e-admit runs this")
	}
	options := Options{AdmissionPlugins: []string{"PodNodeSelector"}, WithoutControllers: true}
	c := started(t, programs(t, "etcd", "kube-apiserver"), options)
	program := builtPrerig(t)
	number := func(name string, otherwise uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	n, seed := int(number("PRERIG_ADMIT_N", 400)), number("PRERIG_ADMIT_SEED", 1)
	m := &admitMaker{Rand: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // made-up input
	all := classes()
	var pods []map[string]any
	for range max(n/10, 1) {
		s := m.set(10)
		all, pods = append(all, s.objects...), append(pods, s.pods...)
	}
	kept := all[:0:0]
	for _, o := range all {
		if _, err := c.Create(t.Context(), newUnstructuredObject(o)); err != nil {
			if apierrors.IsInvalid(err) { // a policy that does not compile, for example
				t.Logf("left out: %v", err)
				continue
			}
			t.Fatalf("%s %v: %v", o["kind"], o["metadata"], err)
		}
		kept = append(kept, o)
	}
	c.awaitMutation(t)
	got := admitWith(t, program, kept, pods)
	if len(got) != len(pods) {
		t.Fatalf("%d answers for %d pods", len(got), len(pods))
	}
	counts := map[string]int{}
	for i, pod := range pods {
		outcome := compareAdmitted(t, c, pod, got[i])
		if outcome == "different" {
			t.Logf("seed %d, pod %d", seed, i)
		}
		counts[outcome]++
	}
	t.Logf("seed %d: %d pods: %v", seed, len(pods), counts)
	if counts["equal"] < len(pods)/4 {
		t.Errorf("only %d pods were stored and compared", counts["equal"])
	}
}

// awaitMutation waits until the API server evaluates the mutating policies that were made before.
func (c *Cluster) awaitMutation(t *testing.T) {
	t.Helper()
	const name = "mark"
	for _, o := range []map[string]any{
		object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "", name, map[string]any{"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"configmaps"}, "resourceNames": []any{name},
			}}},
			"reinvocationPolicy": "Never",
			"mutations": []any{map[string]any{"patchType": apply, "applyConfiguration": map[string]any{
				"expression": `Object{metadata: Object.metadata{labels: {"marked": "yes"}}}`,
			}}},
		}}),
		object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", "", name, map[string]any{"spec": map[string]any{"policyName": name}}),
	} {
		if _, err := c.Create(t.Context(), newUnstructuredObject(o)); err != nil {
			t.Fatal(err)
		}
	}
	probe := newUnstructuredObject(object("v1", "ConfigMap", "", name, nil))
	err := c.pollUntilReady(t.Context(), func(ctx context.Context) error {
		found, err := c.Try(ctx, probe)
		if err == nil && found.GetLabels()["marked"] == "" {
			return fmt.Errorf("the policy %s is not evaluated yet", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// admitWith runs prerig admit over pods.
func admitWith(t *testing.T, program string, cluster, pods []map[string]any) []admitted {
	t.Helper()
	dir := t.TempDir()
	capture := object("prerig.dev/v1alpha1", "ClusterCapture", "", "", map[string]any{"kubernetesVersion": KubernetesVersion, "complete": completeKinds})
	writeStream(t, filepath.Join(dir, "cluster.yaml"), append(slices.Clone(cluster), capture))
	writeStream(t, filepath.Join(dir, "pods.yaml"), pods)
	command := exec.CommandContext(t.Context(), program, "admit", "--as-is", "--why", "-o", "json", "--pod-node-selector", "--as", "administrator",
		"--as-group", "system:masters", "--cluster", filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "pods.yaml"))
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil && command.ProcessState.ExitCode() != 1 {
		t.Fatalf("prerig admit: %v\n%s", err, errs.String())
	}
	var answers []admitted
	if err := json.Unmarshal(out.Bytes(), &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

func writeStream(t *testing.T, path string, objects []map[string]any) {
	t.Helper()
	var text bytes.Buffer
	for _, o := range objects {
		one, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(one)
		text.WriteString("\n")
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// compareAdmitted compares the answer for a pod with the API server's.
func compareAdmitted(t *testing.T, c *Cluster, pod map[string]any, got admitted) string {
	t.Helper()
	stored, err := c.Try(t.Context(), newUnstructuredObject(pod))
	named := slices.ContainsFunc(got.Missing, func(text string) bool { return strings.HasPrefix(text, "the order of ") })
	switch {
	case err != nil && apierrors.IsInvalid(err) && strings.Contains(err.Error(), "is invalid:") && got.Rejected == "":
		return "not valid" // by the validation that prerig gate runs
	case err != nil && got.Rejected != "":
		if !sameRejection(err.Error(), got.Rejected) && !named {
			t.Errorf("the reasons differ:\nserver: %v\nprerig: %s\n%v", err, got.Rejected, pod)
			return "different"
		}
		return "rejected"
	case named:
		return "named: order"
	case err != nil:
		t.Errorf("the server rejects it, and prerig does not: %v\n%v\nmissing: %v", err, pod, got.Missing)
		return "different"
	case got.Rejected != "":
		t.Errorf("prerig rejects it, and the server does not: %s\n%v", got.Rejected, pod)
		return "different"
	}
	if d := cmp.Diff(withoutDrawn(stored.Object), withoutDrawn(got.Pod)); d != "" {
		t.Errorf("the pods differ (-server +prerig):\n%s\n%v\nmissing: %v", d, pod, got.Missing)
		return "different"
	}
	for _, r := range got.Reasons {
		if r.Step == "" {
			t.Errorf("%s has no reason", r.Field)
		}
	}
	return "equal"
}

var drawn = lazyregexp.New(`kube-api-access-[a-z0-9]{5}`)

// withoutDrawn returns a pod without what only a server knows.
func withoutDrawn(pod map[string]any) any {
	copied := (&unstructured.Unstructured{Object: pod}).DeepCopy()
	delete(copied.Object, "status")
	metadata := copied.Object["metadata"].(map[string]any)
	for _, key := range []string{"uid", "creationTimestamp", "managedFields", "generation", "resourceVersion"} {
		delete(metadata, key)
	}
	if metadata["generateName"] != nil {
		delete(metadata, "name")
	}
	text, err := json.Marshal(copied.Object)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal([]byte(drawn.ReplaceAllString(string(text), "kube-api-access-drawn")), &out); err != nil {
		panic(err)
	}
	return out
}

// sameRejection reports whether a server's message has the reason, without the step before it. Several reasons of one LimitRange are in no
// fixed order.
func sameRejection(server, reason string) bool {
	_, text, _ := strings.Cut(reason, ": ")
	if strings.Contains(server, text) {
		return true
	}
	if !strings.HasPrefix(reason, "LimitRanger") {
		return false
	}
	for part := range strings.SplitSeq(strings.Trim(text, "[]"), ", m") {
		if !strings.Contains(server, strings.TrimPrefix(part, "m")) {
			return false
		}
	}
	return true
}
