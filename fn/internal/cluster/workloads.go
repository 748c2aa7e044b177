// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Outcome is what a cluster made of a workload: one of the fields is set.
type Outcome struct {
	// Pod is its first pod, as it was read back.
	Pod *unstructured.Unstructured
	// Invalid is why the API server did not take the workload itself.
	Invalid string
	// Refused is why its controller, or the one who created it, got no pod.
	Refused string
}

// String returns what became of the workload, in one line.
func (o Outcome) String() string {
	switch {
	case o.Pod != nil:
		return "a pod"
	case o.Invalid != "":
		return "invalid: " + o.Invalid
	default:
		return "refused: " + o.Refused
	}
}

// settled is how long workloads may take until each has a pod or none: CronJobs start at the next minute, and controllers whose request a
// webhook did not answer in time wait longer each time until they try again.
const settled = 20 * time.Minute

// nudgeEvery is how long a workload has neither a pod nor a reason for none until its controller is made to look at it again.
const nudgeEvery = 3 * time.Minute

// atOnce is how many workloads are in the cluster at once, but for CronJobs, which all wait for the same minute.
const atOnce = 300

// Run creates workloads, returns what became of each, in their order, and removes them. Each must have a name that no other
// workload of its kind in its namespace has had, and is expected to make at least one pod.
func (c *Cluster) Run(ctx context.Context, workloads []*unstructured.Unstructured) ([]Outcome, error) {
	var timed, others []int
	for i, w := range workloads {
		if w.GetKind() == "CronJob" {
			timed = append(timed, i)
		} else {
			others = append(others, i)
		}
	}
	outcomes := make([]Outcome, len(workloads))
	first := batch{c, workloads, outcomes, map[owner]int{}, nil}
	if err := first.createWorkloads(ctx, timed); err != nil {
		return nil, err
	}
	// The first of the others fill the minute that CronJobs wait for. No more of them: a CronJob that stays makes another Job each minute.
	few := min(len(others), atOnce)
	if err := c.runTogether(ctx, workloads, outcomes, others[:few]); err != nil {
		return nil, err
	}
	if err := first.awaitAndDelete(ctx); err != nil {
		return nil, err
	}
	for chunk := range slices.Chunk(others[few:], atOnce) {
		if err := c.runTogether(ctx, workloads, outcomes, chunk); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// runTogether creates the workloads at some places, waits for what becomes of them, and removes them.
func (c *Cluster) runTogether(ctx context.Context, workloads []*unstructured.Unstructured, outcomes []Outcome, places []int) error {
	b := batch{c, workloads, outcomes, map[owner]int{}, nil}
	if err := b.createWorkloads(ctx, places); err != nil {
		return err
	}
	return b.awaitAndDelete(ctx)
}

// batch is a part of the workloads that are in the cluster at the same time.
type batch struct {
	*Cluster
	workloads []*unstructured.Unstructured
	outcomes  []Outcome
	waiting   map[owner]int // those without an outcome, by their place in workloads
	created   []*unstructured.Unstructured
}

// createWorkloads creates workloads.
func (b *batch) createWorkloads(ctx context.Context, places []int) error {
	for _, i := range places {
		if err := b.createWorkload(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// awaitAndDelete waits until all have become something, and removes them.
func (b *batch) awaitAndDelete(ctx context.Context) error {
	deadline, nudged := time.Now().Add(settled), time.Now()
	for len(b.waiting) > 0 {
		if err := b.recordWaitingStates(ctx); err != nil {
			return err
		}
		if len(b.waiting) > 0 && time.Now().After(deadline) {
			one := slices.Collect(maps.Keys(b.waiting))[0]
			return fmt.Errorf("waiting for the pods of %d workloads: none after %s; one is %v: %s", len(b.waiting), settled, one, b.describeStuckWorkload(ctx, one))
		}
		if time.Since(nudged) > nudgeEvery {
			nudged = time.Now()
			if err := b.touchWaitingWorkloads(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
	for _, made := range b.created {
		if err := b.Delete(ctx, made); err != nil {
			return fmt.Errorf("removing the %s %s: %w", made.GetKind(), made.GetName(), err)
		}
	}
	return nil
}

// touchWaitingWorkloads has controllers look again at the workloads that wait: an event can be lost on a busy machine,
// and a controller whose request a webhook did not answer in time waits longer each time.
func (b *batch) touchWaitingWorkloads(ctx context.Context) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"nudged":%q}}}`, time.Now().Format(time.RFC3339))
	for _, made := range b.created {
		if _, waits := b.waiting[owner{made.GetNamespace(), made.GetKind(), made.GetName()}]; !waits {
			continue
		}
		resource, err := b.resourceInterfaceFor(made)
		if err == nil {
			_, err = resource.Patch(ctx, made.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			return fmt.Errorf("nudging the %s %s: %w", made.GetKind(), made.GetName(), err)
		}
	}
	return nil
}

// describeStuckWorkload returns the cluster's messages about a workload that makes no progress: its status and its
// events.
func (b *batch) describeStuckWorkload(ctx context.Context, of owner) string {
	var out []string
	if resource, err := b.resourceInterfaceFor(b.workloads[b.waiting[of]]); err == nil {
		now, err := resource.Get(ctx, of.name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		out = append(out, fmt.Sprint("status ", now.Object["status"]))
	}
	events, err := b.listResource(ctx, of.namespace, schema.GroupVersionResource{Version: "v1", Resource: "events"})
	if err != nil {
		return err.Error()
	}
	for _, e := range events {
		if name, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name"); strings.HasPrefix(name, of.name) {
			out = append(out, fmt.Sprintf("%v %v: %v", name, e.Object["reason"], e.Object["message"]))
		}
	}
	return strings.Join(out, "; ")
}

// createWorkload creates a workload. What becomes of a Pod, or of one that is not taken, is then known.
func (b *batch) createWorkload(ctx context.Context, i int) error {
	w := b.workloads[i]
	made, err := b.Create(ctx, w)
	for attempt := 1; attempt < attempts && err != nil && tooSlow(err.Error()); attempt++ {
		made, err = b.Create(ctx, w)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case apierrors.IsAlreadyExists(err):
		return err // two of the generated workloads have the same name
	case err == nil && w.GetKind() == "Pod":
		b.outcomes[i] = Outcome{Pod: made}
	case err == nil:
		b.waiting[owner{made.GetNamespace(), made.GetKind(), made.GetName()}] = i
	case w.GetKind() == "Pod" && (!apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "denied the request")):
		// One that can be read is seen by the webhook, which may also be what makes it valid.
		b.outcomes[i] = Outcome{Refused: err.Error()}
	default:
		b.outcomes[i] = Outcome{Invalid: err.Error()}
	}
	if err == nil {
		b.created = append(b.created, made)
	}
	return nil
}

// attempts is how often a Pod is created whose webhook does not answer in time. Controllers try again by themselves.
const attempts = 5

// tooSlow reports whether an error is merely a timeout.
func tooSlow(message string) bool { return strings.Contains(message, "context deadline exceeded") }

// recordWaitingStates records the state of the workloads that are still waiting.
func (b *batch) recordWaitingStates(ctx context.Context) error {
	namespaces := map[string]bool{}
	for of := range b.waiting {
		namespaces[of.namespace] = true
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		found, err := b.collectWorkloadOutcomes(ctx, namespace)
		if err != nil {
			return errors.Join(err, b.componentExitError())
		}
		for of, i := range b.waiting {
			if outcome, ok := found[of]; ok {
				b.outcomes[i] = outcome
				delete(b.waiting, of)
			}
		}
	}
	return nil
}

// owner is an object that has pods, directly or through others.
type owner struct{ namespace, kind, name string }

// collectWorkloadOutcomes returns what the workloads of a namespace have come to so far.
func (c *Cluster) collectWorkloadOutcomes(ctx context.Context, namespace string) (map[owner]Outcome, error) {
	above, err := c.intermediateOwners(ctx, namespace)
	if err != nil {
		return nil, err
	}
	top := func(o owner) owner {
		for {
			next, ok := above[o]
			if !ok {
				return o
			}
			o = next
		}
	}
	out := map[owner]Outcome{}
	events, err := c.listResource(ctx, namespace, schema.GroupVersionResource{Version: "v1", Resource: "events"})
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		var event corev1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.Object, &event); err != nil {
			return nil, err
		}
		if event.Reason == "FailedCreate" && isFinalFailure(event.Message) {
			o := top(owner{namespace, event.InvolvedObject.Kind, event.InvolvedObject.Name})
			out[o] = Outcome{Refused: event.Message}
		}
	}
	pods, err := c.listResource(ctx, namespace, schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	if err != nil {
		return nil, err
	}
	// By name: of a StatefulSet's pods the first, of others any, but the same one each time.
	slices.SortFunc(pods, func(a, b unstructured.Unstructured) int { return strings.Compare(b.GetName(), a.GetName()) })
	for i := range pods {
		if of := controllerOwner(&pods[i]); of != nil {
			out[top(*of)] = Outcome{Pod: &pods[i]}
		}
	}
	return out, nil
}

// isFinalFailure reports whether a controller that got no pod for this reason will get none later. Others pass, such as
// a timeout.
func isFinalFailure(message string) bool {
	for _, part := range []string{"denied the request", " is invalid: ", " is forbidden: ", "failed calling webhook"} {
		if strings.Contains(message, part) {
			return !tooSlow(message)
		}
	}
	return false
}

// intermediateOwners returns the controllers of the objects of a namespace that are between a workload and its pods.
func (c *Cluster) intermediateOwners(ctx context.Context, namespace string) (map[owner]owner, error) {
	out := map[owner]owner{}
	for _, between := range []struct {
		kind     string
		resource schema.GroupVersionResource
	}{
		{"ReplicaSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}},
		{"Job", schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}},
	} {
		objects, err := c.listResource(ctx, namespace, between.resource)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			if of := controllerOwner(&objects[i]); of != nil {
				out[owner{namespace, between.kind, objects[i].GetName()}] = *of
			}
		}
	}
	return out, nil
}

// controllerOwner returns the owner of an object that controls it, or nil.
func controllerOwner(obj *unstructured.Unstructured) *owner {
	ref := metav1.GetControllerOf(obj)
	if ref == nil {
		return nil
	}
	return &owner{obj.GetNamespace(), ref.Kind, ref.Name}
}

func (c *Cluster) listResource(ctx context.Context, namespace string, resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	found, err := c.dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing the %s of %s: %w", resource.Resource, namespace, err)
	}
	return found.Items, nil
}

// Prompt changes a workload so that it makes a pod soon, in ways that injection does not look at: at least one replica,
// not suspended, each minute.
func Prompt(workload *unstructured.Unstructured) error {
	spec := workload.Object
	set := func(value any, path ...string) error { return unstructured.SetNestedField(spec, value, path...) }
	switch workload.GetKind() {
	case "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController":
		return set(int64(1), "spec", "replicas")
	case "CronJob":
		if err := set("* * * * *", "spec", "schedule"); err != nil {
			return err
		}
		if err := set(false, "spec", "jobTemplate", "spec", "suspend"); err != nil {
			return err
		}
		return set(false, "spec", "suspend")
	case "Job":
		return set(false, "spec", "suspend")
	}
	return nil
}
