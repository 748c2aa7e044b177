// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
)

// afterRemoval is the exception for workloads that look as if they had been injected. What Prerig makes of one has to
// be what the cluster makes of the workload without the injection, to the last field.
var afterRemoval = exception{
	"injected before", "sidecar.istio.io/status is of an injection that the pod has: Prerig takes it out first, where the webhook keeps what it is given; the result is what the webhook makes of the workload without it",
	func(*Case, Difference) bool { return false },
}

// lastOfKey is the exception for lists in which the webhook writes a key several times.
var lastOfKey = exception{
	"last entry of a key", podmap.KeepLastRule,
	func(*Case, Difference) bool { return false },
}

// judgeAfterRemoval compares the cases that differ and look like repeated injections with the cluster's result for
// the workload without the injection, which Prerig removes.
func (c *cluster) judgeAfterRemoval(ctx context.Context, tools Tools, cases []*Case) error {
	var asked, again []*Case
	var workloads []map[string]any
	for _, k := range cases {
		if k.Result == Different && InjectedBefore(k.Workload) {
			asked, workloads = append(asked, k), append(workloads, k.Workload)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	removed, err := c.applyPrerigMode(ctx, v1alpha1.ModeRemove, workloads)
	if err != nil {
		return fmt.Errorf("taking injections out as the installation %s: %w", c.Name, err)
	}
	for i, r := range removed {
		workloads[i] = r.workload
		again = append(again, &Case{Installation: c.Name, Seed: asked[i].Seed, Number: asked[i].Number, Workload: r.workload,
			Prerig: asked[i].Prerig, PrerigRefused: asked[i].PrerigRefused})
	}
	pods, refusals, err := tools.serverSidePods(ctx, workloads)
	if err != nil {
		return err
	}
	read, pods := readableCases(again, pods, refusals)
	if read, err = c.runThroughWebhook(ctx, tools, read, pods); err != nil {
		return err
	}
	if err := validateRejectedPods(ctx, tools, read); err != nil {
		return err
	}
	for i, k := range again {
		if k.Result != Unreadable && k.Result != Newer {
			if err := k.determineResult(); err != nil {
				return fmt.Errorf("comparing the case %s without its injection: %w", k.Name(), err)
			}
		}
		asked[i].adoptFreshResult(k)
	}
	return nil
}

// adoptFreshResult adopts the result of the case without its earlier injection.
func (k *Case) adoptFreshResult(without *Case) {
	k.WithoutInjection = without.Workload
	switch without.Result {
	case EqualInjected, EqualLeft, RefusedByBoth:
		k.Result, k.Exceptions = Excepted, []string{afterRemoval.name}
	case Excepted:
		k.Result, k.Exceptions = Excepted, append(without.Exceptions, afterRemoval.name)
	default:
		k.Differences, k.Cluster, k.ClusterRefused = without.Differences, without.Cluster, without.ClusterRefused
	}
}

// InjectedBefore reports whether the status annotation of a workload's pod lists an element that the pod has. If an
// injection wrote it, Prerig removes that injection first, whereas the webhook keeps what it receives, so the
// results may differ.
func InjectedBefore(workload map[string]any) bool { return injectedBefore(templateOf(workload)) }

// injectedBefore reports whether the status annotation of the pod lists something that the pod has.
func injectedBefore(pod map[string]any) bool {
	spec, _ := pod["spec"].(map[string]any)
	for field, names := range listedInStatus(pod) {
		has, _ := partsByKey(append([]any{}, anyList(spec[field])...))
		for _, name := range names {
			if text, ok := name.(string); ok && has["["+text+"]"] != nil {
				return true
			}
		}
	}
	return false
}

// statusAnnotation returns the pod's status annotation.
func statusAnnotation(pod map[string]any) (string, bool) {
	meta, _ := pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, ok := annotations["sidecar.istio.io/status"].(string)
	return text, ok
}

// listedInStatus returns what the status annotation lists, by field.
func listedInStatus(pod map[string]any) map[string][]any {
	text, _ := statusAnnotation(pod)
	var lists map[string]any
	if json.Unmarshal([]byte(text), &lists) != nil {
		return nil
	}
	out := map[string][]any{}
	for _, field := range []string{"containers", "initContainers", "volumes", "imagePullSecrets"} {
		if names := anyList(lists[field]); len(names) > 0 {
			out[field] = names
		}
	}
	return out
}
