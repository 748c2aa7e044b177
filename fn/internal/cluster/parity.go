// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/fn/internal/oracle"
)

// Verdict is how what Prerig makes of a workload compares with what the webhook makes of it.
type Verdict string

// The verdicts.
const (
	Equal           Verdict = "injected, equal"
	NotInjected     Verdict = "not injected, equal"
	Different       Verdict = "different"
	Invalid         Verdict = "invalid without any injection"
	BothRefuse      Verdict = "refused by both"
	OnlyPrerigTakes Verdict = "refused by the webhook's cluster alone"
	OnlyWebhook     Verdict = "refused by Prerig alone"
	InjectedBefore  Verdict = "injected before: Prerig's is what the webhook makes of the workload without that injection"
)

// good are the verdicts that are as they should be.
var good = []Verdict{Equal, NotInjected, Invalid, BothRefuse, InjectedBefore}

// Case is a workload on both ways.
type Case struct {
	Workload *unstructured.Unstructured
	raw      *unstructured.Unstructured // what the cluster with the webhook gets
	Verdict  Verdict
	// Webhook is what the cluster with the webhook made of the workload.
	Webhook Outcome
	// Refused is why Prerig refused it, or "".
	Refused string
	// Prerig is the outcome of Prerig's output in the cluster without the webhook, if any.
	Prerig Outcome
	// Differences are those of the pods.
	Differences []oracle.Difference
	// Without is the case of the same workload under another name whose earlier injection Prerig has removed before
	// the webhook sees it, or nil if none exists. The webhook renders over an existing injection, and Prerig from
	// the original: so the two may differ for the workload itself, but not for this one.
	Without *Case
}

// Parity has what came of many workloads.
type Parity struct {
	Cases []Case
	// Used counts, for each rule that allows pods to differ, the cases that needed it.
	Used map[string]int
}

// CompareClusters runs workloads through a cluster with the webhook, and Prerig's output for them through one without it.
func CompareClusters(ctx context.Context, webhook, plain *Cluster, prerig *Prerig, workloads []*unstructured.Unstructured) (*Parity, error) {
	p := &Parity{Cases: make([]Case, len(workloads)), Used: map[string]int{}}
	var cases []*Case
	for i, w := range workloads {
		c := &p.Cases[i]
		c.Workload, c.raw = w, w
		cases = append(cases, c)
		if oracle.InjectedBefore(w.Object) {
			twin, err := withoutInjection(ctx, prerig, w)
			if err != nil {
				return nil, err
			}
			c.Without = twin
			cases = append(cases, twin)
		}
	}
	if err := runBothWays(ctx, webhook, plain, prerig, cases); err != nil {
		return nil, err
	}
	for i := range p.Cases {
		p.Cases[i].determineVerdict(p.Used)
	}
	return p, nil
}

// withoutInjection returns the case of a workload under another name whose injection Prerig removes before the
// webhook.
func withoutInjection(ctx context.Context, prerig *Prerig, workload *unstructured.Unstructured) (*Case, error) {
	twin := workload.DeepCopy()
	for _, rename := range []struct {
		name string
		set  func(string)
	}{{twin.GetName(), twin.SetName}, {twin.GetGenerateName(), twin.SetGenerateName}} {
		if rename.name != "" {
			rename.set("z" + rename.name[1:]) // no name of the generator begins so, and the length stays
		}
	}
	raw, err := prerig.Remove(ctx, twin)
	return &Case{Workload: twin, raw: raw}, err
}

// runBothWays has Prerig inject into the cases' workloads, and the clusters make pods of both.
func runBothWays(ctx context.Context, webhook, plain *Cluster, prerig *Prerig, cases []*Case) error {
	outputs, err := injectEach(ctx, prerig, cases)
	if err != nil {
		return err
	}
	var raw, injected []*unstructured.Unstructured
	var of []*Case
	for i, c := range cases {
		raw = append(raw, c.raw)
		if c.Refused == "" {
			injected, of = append(injected, outputs[i]), append(of, c)
		}
	}
	var byWebhook, byPrerig []Outcome
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		byWebhook, err = webhook.Run(ctx, raw)
		return wrapActionError("running the workloads with the webhook", err)
	})
	group.Go(func() (err error) {
		byPrerig, err = plain.Run(ctx, injected)
		return wrapActionError("running Prerig's output without the webhook", err)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for i, c := range cases {
		c.Webhook = byWebhook[i]
	}
	for i, c := range of {
		c.Prerig = byPrerig[i]
	}
	return nil
}

// injectEach has Prerig inject into the workload of each case, several at a time, and notes what it refuses.
func injectEach(ctx context.Context, prerig *Prerig, cases []*Case) ([]*unstructured.Unstructured, error) {
	out := make([]*unstructured.Unstructured, len(cases))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range cases {
		group.Go(func() (err error) {
			out[i], c.Refused, err = prerig.Inject(ctx, c.Workload)
			return err
		})
	}
	return out, group.Wait()
}

// wrapActionError adds the failed action to an error, if it is not nil.
func wrapActionError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// determineVerdict sets the verdict.
func (c *Case) determineVerdict(used map[string]int) {
	c.Verdict = c.compareOutcomes(used)
	if c.Good() || c.Without == nil {
		return
	}
	if c.Without.determineVerdict(used); c.Without.Good() {
		c.Verdict = InjectedBefore
	}
}

// compareOutcomes compares the outcomes, and notes where pods differ.
func (c *Case) compareOutcomes(used map[string]int) Verdict {
	switch {
	case c.Webhook.Invalid != "" && c.Prerig.Pod == nil:
		return Invalid
	case c.Webhook.Pod == nil && c.Prerig.Pod == nil:
		return BothRefuse
	case c.Webhook.Pod == nil:
		return OnlyPrerigTakes
	case c.Prerig.Pod == nil:
		return OnlyWebhook
	}
	c.Differences = Compare(c.Webhook.Pod, c.Prerig.Pod, used)
	switch {
	case len(c.Differences) > 0:
		return Different
	case c.Webhook.Pod.GetAnnotations()["sidecar.istio.io/status"] != c.Workload.GetAnnotations()["sidecar.istio.io/status"]:
		return Equal
	}
	return NotInjected
}

// Good reports whether the verdict is as it should be.
func (c *Case) Good() bool { return slices.Contains(good, c.Verdict) }

// String returns a table: how many cases have each verdict, how often each rule was needed, and in which fields how many
// cases differ.
func (p *Parity) String() string {
	verdicts, classes := map[string]int{}, map[string]int{}
	for _, c := range p.Cases {
		verdicts[string(c.Verdict)]++
		seen := map[string]bool{}
		if c.Good() {
			continue
		}
		for _, d := range c.Differences {
			if place := differenceClass(d); !seen[place] {
				seen[place] = true
				classes[place]++
			}
		}
	}
	var out strings.Builder
	table := func(title string, counts map[string]int) {
		if len(counts) == 0 {
			return
		}
		fmt.Fprintf(&out, "%s\n", title)
		for _, key := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
			if counts[a] != counts[b] {
				return counts[b] - counts[a]
			}
			return strings.Compare(a, b)
		}) {
			fmt.Fprintf(&out, "%6d  %s\n", counts[key], key)
		}
	}
	table(fmt.Sprintf("%d workloads:", len(p.Cases)), verdicts)
	table("may differ by these rules, in so many pods:", p.Used)
	table("differ, in so many pods:", classes)
	return out.String()
}
