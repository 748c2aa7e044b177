// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
)

// Result is how a case came out.
type Result string

// The results.
const (
	// Unreadable are workloads that the API server cannot read.
	Unreadable Result = "not readable to the API server"
	// EqualInjected and EqualLeft are pods that are the same on both ways, injected or not.
	EqualInjected Result = "equal, injected"
	EqualLeft     Result = "equal, not injected"
	// RefusedByBoth are workloads that both the webhook and Prerig reject.
	RefusedByBoth Result = "refused by both"
	// Newer are pods with fields that the webhook's Kubernetes types do not have: what becomes of those is not
	// compared.
	Newer Result = "left out, with fields that are newer than the injector's Kubernetes"
	// Excepted differ for a reason that is listed.
	Excepted Result = "different for a listed reason"
	// Different are all the others.
	Different Result = "different"
)

// Case is one workload and what became of it.
type Case struct {
	Installation string
	Seed         uint64
	Number       int
	Workload     map[string]any
	// WithoutInjection is the workload without the injection that it looks to have; nil where it was not compared so.
	WithoutInjection map[string]any
	// Webhook is the pod that the webhook got.
	Webhook map[string]any
	// Cluster and Prerig are the pods at the ends of the two ways; nil where they are refused.
	Cluster, Prerig map[string]any
	// ClusterRefused and PrerigRefused are why.
	ClusterRefused, PrerigRefused string
	Result                        Result
	Differences                   []Difference
	// Exceptions are the names of those that explain the differences, all of them or none.
	Exceptions []string

	injected bool
}

// Name is what shows the case alone.
func (c *Case) Name() string { return fmt.Sprintf("%s/%d/%d", c.Installation, c.Seed, c.Number) }

// processCases processes the cases of an installation both ways.
func (c *cluster) processCases(ctx context.Context, tools Tools, seed uint64, numbers []int) ([]*Case, error) {
	cases := make([]*Case, len(numbers))
	workloads := make([]map[string]any, len(numbers))
	for i, n := range numbers {
		workloads[i], _ = plainJSON(c.workloadByNumber(seed, n)).(map[string]any)
		cases[i] = &Case{Installation: c.Name, Seed: seed, Number: n, Workload: workloads[i]}
	}
	raw, refusals, err := tools.serverSidePods(ctx, workloads)
	if err != nil {
		return nil, err
	}
	read, raw := readableCases(cases, raw, refusals)
	if c.raw {
		for i, k := range read {
			// The webhook's patch is one of the typed pod.
			pod, err := decodeTypedPod(podOf(k.Workload))
			if err != nil {
				return nil, fmt.Errorf("reading the pod of the case %s: %w", k.Name(), err)
			}
			raw[i], _ = toPlainJSON(pod).(map[string]any)
		}
	}
	if c.byChart {
		err = c.chartWay(ctx, tools, read, raw)
	} else {
		read, err = c.runThroughWebhook(ctx, tools, read, raw)
	}
	if err != nil {
		return nil, err
	}
	if _, err := c.runThroughPrerig(ctx, tools, read); err != nil {
		return nil, err
	}
	if err := validateRejectedPods(ctx, tools, read); err != nil {
		return nil, err
	}
	for _, k := range read {
		if err := k.determineResult(); err != nil {
			return nil, fmt.Errorf("comparing the case %s: %w", k.Name(), err)
		}
		if c.builtIn {
			k.exceptBuiltIn()
		}
	}
	if c.byChart {
		return cases, nil // an earlier injection was taken out on both ways
	}
	return cases, c.judgeAfterRemoval(ctx, tools, read)
}

// workloadByNumber returns a workload of the installation: one that is written by hand, or one that is drawn.
func (i Installation) workloadByNumber(seed uint64, number int) map[string]any {
	if i.Workloads != nil {
		return i.Workloads[number]
	}
	return Generate(seed, i.Name, number)
}

// readableCases returns the cases that the API server can read, with their pods.
func readableCases(cases []*Case, pods []map[string]any, refusals []string) ([]*Case, []map[string]any) {
	var keptCases []*Case
	var keptPods []map[string]any
	for i, k := range cases {
		if refusals[i] != "" {
			k.ClusterRefused, k.Result = refusals[i], Unreadable
			continue
		}
		keptCases, keptPods = append(keptCases, k), append(keptPods, pods[i])
	}
	return keptCases, keptPods
}

// serverSidePods returns the pods that the API server would have for the workloads: defaulted as their kind, then as
// Pods.
func (t Tools) serverSidePods(ctx context.Context, workloads []map[string]any) ([]map[string]any, []string, error) {
	stored, refusals, err := t.serverSideWorkloads(ctx, workloads)
	if err != nil {
		return nil, nil, err
	}
	var pods []map[string]any
	var at []int
	for i, w := range stored {
		if refusals[i] == "" {
			pods, at = append(pods, podOf(w)), append(at, i)
		}
	}
	created, again, err := t.defaultObjects(ctx, pods)
	if err != nil {
		return nil, nil, err
	}
	out := make([]map[string]any, len(workloads))
	for j, i := range at {
		out[i], refusals[i] = created[j], again[j]
	}
	return out, refusals, nil
}

// serverSideWorkloads returns the workloads as the API server has them. It sets no defaults in custom resources.
func (t Tools) serverSideWorkloads(ctx context.Context,
	workloads []map[string]any) ([]map[string]any, []string, error) {
	var known []map[string]any
	var at []int
	for i, w := range workloads {
		if kind, _ := w["kind"].(string); !isCustom(kind) {
			known, at = append(known, w), append(at, i)
		}
	}
	answers, why, err := t.defaultObjects(ctx, known)
	if err != nil {
		return nil, nil, err
	}
	out, refusals := slices.Clone(workloads), make([]string, len(workloads))
	for j, i := range at {
		out[i], refusals[i] = answers[j], why[j]
	}
	return out, refusals, nil
}

// runThroughWebhook sends the pods through the webhook where it is called, and returns the cases that can be compared.
func (c *cluster) runThroughWebhook(ctx context.Context, tools Tools, cases []*Case,
	pods []map[string]any) ([]*Case, error) {
	var asked []*Case
	var sent []map[string]any
	for i, k := range cases {
		k.Webhook, k.Cluster = pods[i], pods[i]
		called, err := c.callsWebhookFor(pods[i])
		if err != nil {
			return nil, err
		}
		if called {
			asked, sent = append(asked, k), append(sent, pods[i])
		}
	}
	answers, err := c.askIstiodWebhook(ctx, tools, sent)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		k := asked[i]
		switch {
		case len(a.Unknown) > 0:
			k.Result = Newer
		case a.Refused != "":
			k.Cluster, k.ClusterRefused = nil, a.Refused
		case a.Pod != nil:
			k.Cluster, k.injected = a.Pod, true
		}
	}
	cases = slices.DeleteFunc(slices.Clone(cases), func(k *Case) bool { return k.Result == Newer })
	return cases, defaultClusterPods(ctx, tools, cases)
}

// defaultClusterPods defaults the cluster's pods again, as the API server does after its webhooks.
func defaultClusterPods(ctx context.Context, tools Tools, cases []*Case) error {
	var kept []*Case
	var pods []map[string]any
	for _, k := range cases {
		if k.Cluster != nil {
			kept, pods = append(kept, k), append(pods, k.Cluster)
		}
	}
	done, refusals, err := tools.defaultObjects(ctx, pods)
	if err != nil {
		return err
	}
	for i, k := range kept {
		k.Cluster, k.ClusterRefused = done[i], refusals[i]
	}
	return nil
}

// chartWay is runThroughWebhook for a release whose injector is not at hand: Prerig injects with the configuration that
// the release's chart installs. That is the same as the release's webhook as far as the golden files of its minor show.
func (c *cluster) chartWay(ctx context.Context, tools Tools, cases []*Case, pods []map[string]any) error {
	chart := *c
	chart.builtIn = false
	answers, err := chart.runThroughPrerig(ctx, tools, cases)
	if err != nil {
		return err
	}
	for i, k := range cases {
		k.Webhook, k.injected = pods[i], answers[i].injected
		k.Cluster, k.ClusterRefused = k.Prerig, k.PrerigRefused
		k.Prerig, k.PrerigRefused = nil, ""
	}
	return nil
}

// runThroughPrerig injects into the workloads and makes their pods.
func (c *cluster) runThroughPrerig(ctx context.Context, tools Tools, cases []*Case) ([]made, error) {
	workloads := make([]map[string]any, len(cases))
	for i, k := range cases {
		workloads[i] = k.Workload
	}
	answers, err := c.applyPrerigMode(ctx, v1alpha1.ModeInject, workloads)
	if err != nil {
		return nil, fmt.Errorf("injecting as the installation %s: %w", c.Name, err)
	}
	for i, a := range answers {
		workloads[i] = a.workload
	}
	pods, refusals, err := tools.serverSidePods(ctx, workloads)
	if err != nil {
		return nil, err
	}
	for i, k := range cases {
		switch {
		case answers[i].refused != "":
			k.PrerigRefused = answers[i].refused
		case refusals[i] != "":
			k.PrerigRefused = "the API server: " + refusals[i]
		default:
			k.Prerig = pods[i]
		}
	}
	return answers, nil
}

// validateRejectedPods checks whether the API server accepts the cluster's pods for which Prerig rejects the workload:
// Prerig may do so because the API server will. The checked pods have a service account, since the admission of service
// accounts has set it by then.
func validateRejectedPods(ctx context.Context, tools Tools, cases []*Case) error {
	var asked []*Case
	var pods []map[string]any
	for _, k := range cases {
		if k.PrerigRefused != "" && k.Cluster != nil {
			asked, pods = append(asked, k), append(pods, withServiceAccount(k.Cluster))
		}
	}
	answers, err := exchangeJSONLines[map[string]any, struct{ Status, Message string }](ctx, pods, tools.Defaulter,
		"-validate")
	if err != nil {
		return err
	}
	for i, k := range asked {
		if answers[i].Status == "Failure" {
			k.Cluster, k.ClusterRefused = nil, "the API server: "+answers[i].Message
		}
	}
	return nil
}

// withServiceAccount returns a pod with a service account: its own, or otherwise the one that the API server sets.
// Without one, validation rejects every pod that has a token in a projected volume, as each injected pod has. The pod
// is not changed.
func withServiceAccount(pod map[string]any) map[string]any {
	spec, _ := pod["spec"].(map[string]any)
	if name, _ := spec["serviceAccountName"].(string); name != "" || spec == nil {
		return pod
	}
	out, filled := maps.Clone(pod), maps.Clone(spec)
	filled["serviceAccountName"], filled["serviceAccount"] = "default", "default"
	out["spec"] = filled
	return out
}

// determineResult determines the result of the case.
func (k *Case) determineResult() error {
	switch {
	case k.ClusterRefused != "" && k.PrerigRefused != "":
		k.Result = RefusedByBoth
		return nil
	case k.isRefusedForRepeatedVariable():
		k.Result, k.Exceptions = Excepted, []string{repeatedVariable.name}
	case k.ClusterRefused != "" || k.PrerigRefused != "":
		k.Result = Different
	default:
		cluster, last := podmap.WithLast(k.Webhook, k.Cluster)
		var err error
		if k.Differences, err = comparePods(cluster, k.Prerig); err != nil {
			return err
		}
		switch {
		case len(k.Differences) == 0 && last:
			k.Result, k.Exceptions = Excepted, []string{lastOfKey.name}
		case len(k.Differences) > 0:
			k.Result = Different
		case k.injected:
			k.Result = EqualInjected
		default:
			k.Result = EqualLeft
		}
	}
	if k.Result == Different {
		if k.Exceptions = k.explainingExceptions(); len(k.Exceptions) > 0 {
			k.Result = Excepted
		}
	}
	return nil
}
