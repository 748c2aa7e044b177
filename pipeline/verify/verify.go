// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// Options describe what is compared.
type Options struct {
	// Registry knows the kinds with pod templates.
	Registry *workload.Registry
	// Namespaces are those whose pods are compared. Empty compares the pods of the namespaces that workloads are
	// committed for.
	Namespaces []string
	// AllNamespaces compares the pods of all namespaces.
	AllNamespaces bool
	// Ignore are patterns of fields that may differ, as a report writes them and with * for any text, such as
	// metadata.annotations["example.com/*"].
	Ignore []string
	// Sidecars are the names of the containers whose versions are counted; none means DefaultSidecars.
	Sidecars []string
	// Audit is the content of the API server's audit log, or nil.
	Audit *Audit
}

// verifier compares the pods of one snapshot.
type verifier struct {
	snapshot *Snapshot
	history  History
	options  Options
	audit    *Audit
	server   admission.Server
	limits   map[string][]limitRange
	mutators []mutator
	heads    map[Ref]*Workload
	// generated are those of heads whose names the API server makes up, by their references.
	generated []*Workload
}

// Verify compares the pods of a snapshot with what was committed. The error is of the context or the options;
// what is wrong with a pod is in the report.
func Verify(ctx context.Context, snapshot *Snapshot, history History, options Options) (*Report, error) {
	v, err := newVerifier(snapshot, history, options)
	if err != nil {
		return nil, err
	}
	report := &Report{
		APIVersion: ReportAPIVersion, Kind: ReportKind, Commit: history.Head(), KubernetesVersion: snapshot.KubernetesVersion,
		Counts: map[State]int{}, Unread: snapshot.unreadKinds(), Pods: []Pod{}, AuditUnnamed: options.Audit.Unnamed(),
	}
	chosen := v.choosePodsToCompare(report)
	results := make([]result, len(chosen))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for i, pod := range chosen {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			results[i] = v.verifyPod(pod)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	v.addPodResults(report, chosen, results)
	return report, nil
}

func newVerifier(snapshot *Snapshot, history History, options Options) (*verifier, error) {
	server, err := admission.NewServer(snapshot.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	v := &verifier{
		snapshot: snapshot, history: history, options: options, audit: options.Audit, server: server, heads: history.Workloads(),
		limits: map[string][]limitRange{}, mutators: snapshot.mutatorsReachingPods(),
	}
	for ref, w := range v.heads {
		if ref.Generated() {
			v.generated = append(v.generated, w)
		}
	}
	slices.SortFunc(v.generated, func(a, b *Workload) int { return a.Ref.compare(b.Ref) })
	for namespace, objects := range snapshot.limits {
		for _, obj := range objects {
			v.limits[namespace] = append(v.limits[namespace], limitRange{admission.NewLimitRange(podmap.CopyMap(obj)), lastWriteTime(obj)})
		}
	}
	return v, nil
}

// limitsFor returns what LimitRanges filled in when a pod was made: the former content of those that were written
// to since is not known.
func (v *verifier) limitsFor(pod map[string]any) []admission.LimitRange {
	var out []admission.LimitRange
	for _, l := range v.limits[refOf(pod).Namespace] {
		if !l.changed.After(creationTime(pod)) {
			out = append(out, l.LimitRange)
		}
	}
	return out
}

// limitRange is one, with when it was written to last.
type limitRange struct {
	admission.LimitRange
	changed time.Time
}

// choosePodsToCompare returns the pods that are compared, by namespace and name, and counts those that have finished.
func (v *verifier) choosePodsToCompare(report *Report) []map[string]any {
	namespaces := map[string]bool{}
	for _, n := range v.options.Namespaces {
		namespaces[n] = true
	}
	if len(namespaces) == 0 {
		for ref := range v.heads {
			namespaces[ref.Namespace] = true
		}
	}
	var out []map[string]any
	for _, pod := range v.snapshot.pods {
		if !v.options.AllNamespaces && !namespaces[podmap.TextAt(pod, "metadata", "namespace")] {
			continue
		}
		if phase := podmap.TextAt(pod, "status", "phase"); phase == "Succeeded" || phase == "Failed" {
			report.Finished++
			continue
		}
		out = append(out, pod)
	}
	slices.SortFunc(out, func(a, b map[string]any) int {
		return cmp.Or(cmp.Compare(podmap.TextAt(a, "metadata", "namespace"), podmap.TextAt(b, "metadata", "namespace")),
			cmp.Compare(podmap.TextAt(a, "metadata", "name"), podmap.TextAt(b, "metadata", "name")))
	})
	return out
}

// result is what became of a pod.
type result struct {
	pod Pod
	// head is the workload of the newest commit, or nil, and template the one of its templates that the pod is of.
	head     *Workload
	template map[string]any
}

// addPodResults adds up the results.
func (v *verifier) addPodResults(report *Report, chosen []map[string]any, results []result) {
	names := v.options.Sidecars
	if len(names) == 0 {
		names = DefaultSidecars
	}
	f := fleet{names: names, by: map[string]*fleetSidecar{}}
	present := map[Ref]bool{}
	for i, r := range results {
		report.Counts[r.pod.State]++
		report.Pods = append(report.Pods, r.pod)
		if r.head != nil {
			present[r.head.Ref] = true
			f.countPodSidecars(r.template, chosen[i])
		}
	}
	report.Sidecars = f.countedSidecars()
	var absent []Ref
	for ref, w := range v.heads {
		if w.elsewhere == nil && !present[ref] && ref.Kind != "PodTemplate" {
			absent = append(absent, ref)
		}
	}
	slices.SortFunc(absent, Ref.compare)
	for _, ref := range absent {
		report.Absent = append(report.Absent, ref.String())
	}
}

// priorityClass returns the class with a name, or the default class if the name is empty; nil if none exists.
func (v *verifier) priorityClass(name string) map[string]any {
	for _, class := range v.snapshot.classes {
		if isDefault, _ := class["globalDefault"].(bool); name == "" && isDefault || name != "" && podmap.TextAt(class, "metadata", "name") == name {
			return class
		}
	}
	return nil
}
