// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// admitted is an answer of prerig admit.
type admitted struct {
	Shape    int            `json:"shape"`
	Pod      map[string]any `json:"pod"`
	Rejected string         `json:"rejected"`
	Missing  []string       `json:"missing"`
	Reasons  []reason       `json:"reasons"`
	// Prevented are the fields that an object keeps as they are in the file.
	Prevented []reason `json:"prevented"`
}

// reason is the cause of a field.
type reason struct {
	Field  string `json:"field"`
	After  any    `json:"after"`
	Step   string `json:"step"`
	Object string `json:"object"`
	// Because lists further causes, and Otherwise is what sets the same value without the object.
	Because   []string `json:"because"`
	Otherwise string   `json:"otherwise"`
}

// isBecauseOf reports whether the field has the value only because of an object.
func (r reason) isBecauseOf(object string) bool {
	return r.Object == object && r.Otherwise == "" || slices.Contains(r.Because, object)
}

// outcomeEqual is that of a pod that is stored as predicted.
const outcomeEqual = "equal"

// TestAdmitIsTheAPIServers compares the pods that prerig admit prints with those that an API server returns from a dry run,
// in made-up namespaces with policies, LimitRanges, accounts and classes, half of them without and half with istiod's
// webhook. PRERIG_ADMIT_N and PRERIG_ADMIT_SEED choose others.
//
// Half of the pods are those of workloads that are alike in groups, which prerig admit admits together.
func TestAdmitIsTheAPIServers(t *testing.T) {
	n := setting(t, "PRERIG_ADMIT_N", 300)
	b := newAdmitBench(t, max(leastSets, n/50))
	for phase := range 2 {
		if phase == 1 {
			b.installIstio(t)
		}
		mesh := []string{"without istiod", "with istiod"}[phase]
		sets := b.addAlike(t, phase, max(1, n/4/alikeWorkloads))
		cluster := b.capture(t)
		pods := b.draw(n / 4)
		got := b.admit(t, cluster, pods)
		outcomes := make([]string, len(pods))
		b.each(t, len(pods), func(i int) {
			outcomes[i] = compareAdmitted(t, b.client, pods[i], got[i])
		})
		b.count(t, mesh, outcomes)
		b.compareAlike(t, mesh, cluster, sets)
	}
}

// count logs the outcomes of pods, and requires that enough of them are compared.
func (b *admitBench) count(t *testing.T, what string, outcomes []string) {
	t.Helper()
	counts := map[string]int{}
	for _, o := range outcomes {
		counts[o]++
	}
	t.Logf("seed %d, Kubernetes %s, %s: %d pods: %v", b.seed, b.programs.Kubernetes, what, len(outcomes), counts)
	if counts[outcomeEqual] < len(outcomes)/6 {
		t.Errorf("only %d pods were stored and compared", counts[outcomeEqual])
	}
}

// compareAdmitted compares the answer for a pod with the API server's.
func compareAdmitted(t *testing.T, c *client, pod *unstructured.Unstructured, got admitted) string {
	t.Helper()
	stored, err := c.Try(t.Context(), pod)
	named := slices.ContainsFunc(got.Missing, func(text string) bool { return strings.HasPrefix(text, "the order of ") })
	switch {
	case err != nil && apierrors.IsInvalid(err) && strings.Contains(err.Error(), "is invalid:") && !isMutatingRejection(got.Rejected):
		return "not valid" // by the validation that prerig gate runs, which comes before the plugins that validate
	case err != nil && got.Rejected != "":
		if !sameRejection(err.Error(), got.Rejected) && !named {
			t.Errorf("the reasons differ:\nserver: %v\nprerig: %s\n%v", err, got.Rejected, pod)
			return "different"
		}
		return "rejected"
	case named && (err != nil || got.Rejected != ""):
		return "named: order"
	case err != nil:
		t.Errorf("the server rejects it, and prerig does not: %v\n%v\nmissing: %v", err, pod, got.Missing)
		return "different"
	case got.Rejected != "":
		t.Errorf("prerig rejects it, and the server does not: %s\n%v", got.Rejected, pod)
		return "different"
	}
	d := cmp.Diff(withoutDrawn(stored.Object), withoutDrawn(got.Pod))
	if named && d != "" {
		return "named: order"
	}
	if d != "" {
		t.Errorf("the pods differ (-server +prerig):\n%s\n%v\nmissing: %v", d, pod, got.Missing)
		return "different"
	}
	for _, r := range got.Reasons {
		if r.Step == "" {
			t.Errorf("%s has no reason", r.Field)
		}
	}
	return outcomeEqual
}

// isMutatingRejection reports whether a pod is rejected by a step that the API server runs before it validates the fields.
func isMutatingRejection(reason string) bool {
	validating := strings.HasPrefix(reason, "LimitRanger: ") || strings.HasPrefix(reason, "ValidatingAdmissionPolicy ")
	return reason != "" && !validating && !strings.HasSuffix(reason, "Overhead set without corresponding RuntimeClass defined Overhead")
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
	labels, _ := metadata["labels"].(map[string]any)
	for _, key := range []string{"pod-template-hash", "controller-revision-hash", "pod-template-generation", "controller-uid", "batch.kubernetes.io/controller-uid"} {
		delete(labels, key)
	}
	for _, key := range []string{"job-name", "batch.kubernetes.io/job-name"} {
		if job, _ := labels[key].(string); strings.HasSuffix(job, numberBetween["CronJob"]) {
			delete(labels, key)
		}
	}
	owners, _ := metadata["ownerReferences"].([]any)
	for _, owner := range owners {
		delete(owner.(map[string]any), "uid")
	}
	text, err := json.Marshal(copied.Object)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal([]byte(withoutNumbers(drawn.ReplaceAllString(string(text), "kube-api-access-drawn"))), &out); err != nil {
		panic(err)
	}
	return out
}

// sameRejection reports whether a server's message has the reason, without the step before it. Several reasons of one LimitRange are in no
// fixed order.
func sameRejection(server, reason string) bool {
	server = withoutNumbers(server)
	_, text, _ := strings.Cut(reason, ": ")
	if strings.Contains(server, text) {
		return true
	}
	if !strings.HasPrefix(reason, "LimitRanger") {
		return false
	}
	_, theirs, found := strings.Cut(server, " is forbidden: ")
	return found && slices.Equal(sortedParts(theirs), sortedParts(text))
}

// sortedParts returns what a list such as "[a, b]" holds, sorted.
func sortedParts(list string) []string {
	return slices.Sorted(strings.SplitSeq(strings.Trim(list, "[]"), ", "))
}
