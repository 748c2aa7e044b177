// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// restoredPod is what is known of a pod before it was injected.
type restoredPod struct {
	// undo is the workload's own record: what the pod does not reveal. It is nil if no record exists.
	undo *podmap.Undo
	// injected reports whether the pod had any injection, and istio whether it had Istio's proxy.
	injected, istio bool
	// sidecars are the other sidecars that the pod came with.
	sidecars []sidecar.Record
	// dropped lists the mounts that were removed with the volumes of sidecars.
	dropped []sidecar.Warning
	// removed describes what is unknown about the original.
	removed inject.Removed
}

// isDoubtful reports whether the pod may have been another one before. Of one with a record, what is not known was changed since.
func (r *restoredPod) isDoubtful() bool {
	return !r.removed.Exact && len(r.removed.Assumed)+len(r.removed.Unknown)+len(r.removed.Listed) > 0
}

// reportDoubts lists what is unknown about the original. What was removed because injection sets it anyway may have
// been the pod's own only if no record of the workload's exists, which a bare Pod cannot have. If the pod does not
// change, only possible errors in it count.
func (r *restoredPod) reportDoubts(report *podReport, changed, bare bool) {
	for _, n := range r.removed.Unknown {
		severity := result.Warning
		if n.Hint {
			severity = result.Info
		}
		if changed || n.Unrecorded {
			report.add(severity, n.Field, "taking an earlier injection out: "+n.Reason)
		}
	}
	if len(r.removed.Assumed) == 0 || !changed {
		return
	}
	fields := make([]string, len(r.removed.Assumed))
	for i, note := range r.removed.Assumed {
		fields[i] = note.Field
	}
	severity := result.Info
	if bare {
		severity = result.Warning
	}
	report.add(severity, "", "taking an earlier injection out: injection sets these, and nothing shows whether "+
		"the pod had the same before: "+strings.Join(fields, ", "))
}

// reportListed names the containers that were removed because the status annotation lists them as injected. A
// template of the user's own that still injects them has added them again.
func (r *restoredPod) reportListed(report *podReport, pod map[string]any) {
	left := containersByName(pod)
	for _, name := range r.removed.Listed {
		if _, there := left[name]; !there {
			report.add(result.Warning, "", fmt.Sprintf("the container %s was taken out, as Istio's webhook does it, "+
				"because the annotation sidecar.istio.io/status lists it as injected; none of Istio's own "+
				"templates has it: if it is the application's, put it back and take its name out of the annotation", name))
		}
	}
}

// reportRemoved warns of injections that were removed from the pod although no policy of this run has them: running
// one policy after the other leaves only the last one's injection.
func (r *restoredPod) reportRemoved(report *podReport, plans []*compiledPolicy) {
	const advice = "; what an earlier run injected is taken out first, so give all policies to one run"
	for _, record := range r.sidecars {
		if record.Policies != nil {
			continue
		}
		has := slices.ContainsFunc(plans, func(pl *compiledPolicy) bool {
			return slices.ContainsFunc(pl.sidecars, func(s *sidecar.Sidecar) bool { return s.Name() == record.Name })
		})
		if !has {
			report.add(result.Warning, "",
				"the sidecar "+record.Name+" was taken out: no policy of this run has it"+advice)
		}
	}
	sidecars := slices.ContainsFunc(plans, func(pl *compiledPolicy) bool { return len(pl.sidecars) > 0 })
	istio := slices.ContainsFunc(plans, func(pl *compiledPolicy) bool { return pl.istio != nil })
	if r.istio && sidecars && !istio {
		report.add(result.Warning, "", "Istio's proxy was taken out: no policy of this run has istio"+advice)
	}
}

// restoreOptions control how a pod is restored.
type restoreOptions struct {
	// names reports whether a template of a policy names a container.
	names func(string) bool
	// keep leaves in place what may have been the pod's own, and doubtful removes what may not have been.
	keep     inject.Keep
	doubtful bool
	// bare reports whether it is a bare Pod, which has no record: its probes get the port's number, and no path for
	// /. In 51 public repositories 15 probes of bare Pods used the number of a port that has a name, and 2 the
	// name; in 39, 67 probes of HTTP had no path, and 40 the path /.
	bare bool
}

// restorePod removes from a pod what was injected: the sidecars around Istio, Istio, and the sidecars inside, each
// in the reverse order of their injection. A record of the whole original overrides all of it; the
// workload's record supplies the rest.
func restorePod(pod map[string]any, owner workload.Owner, undo *podmap.Undo, how restoreOptions) (restoredPod, map[string]any, error) {
	r := restoredPod{undo: undo}
	if undo != nil {
		how.names = nil // as computeUndo, whose record is the difference to what is found without any template
	}
	records, rest, err := sidecar.Records(pod)
	if err != nil {
		return r, nil, err
	}
	r.sidecars = records
	annotations, err := workload.Annotations(pod)
	if err != nil {
		return r, nil, err
	}
	if _, whole := annotations[inject.RecordAnnotation]; whole {
		records, rest = nil, pod
	}
	if rest, err = removeRecords(rest, records, true); err != nil {
		return r, nil, err
	}
	var marked bool
	if rest, marked, err = decide.Unmark(rest); err != nil {
		return r, nil, err
	}
	injected := rest
	if r.removed, err = inject.Remove(inject.RemoveRequest{Pod: rest, Owner: owner, Names: how.names, Keep: how.keep, Doubtful: how.doubtful, Bare: how.bare}); err != nil {
		return r, nil, err
	}
	r.istio = r.removed.Injected
	if r.istio {
		rest = r.removed.Pod
	}
	r.injected = marked || len(r.sidecars) > 0 || r.istio || undo != nil
	if rest, err = removeRecords(rest, records, false); err != nil || undo == nil {
		return r, rest, err
	}
	kept, notes, err := inject.KeepEdits(*undo, injected, rest)
	if err != nil {
		return r, nil, err
	}
	if rest, err = kept.Apply(rest); err != nil {
		return r, nil, fmt.Errorf("reading the workload's annotation %s: %w", undoAnnotation, err)
	}
	r.removed = inject.Removed{Injected: r.istio, Exact: true, Unknown: append(r.removed.Unsettled(rest), notes...)}
	return r, rest, nil
}

// containerNamePredicate returns a predicate that reports whether a template of a policy names a container.
func containerNamePredicate(plans []*compiledPolicy) func(string) bool {
	return func(container string) bool {
		return slices.ContainsFunc(plans, func(pl *compiledPolicy) bool {
			i := pl.policy.Spec.Istio
			return i != nil && (namesContainer(i.Injector.Config, container) || pl.istio != nil && pl.istio.Config() != nil && configNames(pl, container))
		})
	}
}

// configNames is the same for the configuration that is in use, which may come from the items.
func configNames(pl *compiledPolicy, container string) bool {
	c := pl.istio.Config()
	if namesContainer(c.Template, container) {
		return true
	}
	for _, text := range c.Templates {
		if namesContainer(text, container) {
			return true
		}
	}
	return false
}

// namesContainer reports whether a template's text has a name as a value of the key name, in block or flow style.
func namesContainer(template, container string) bool {
	for _, found := range namedValue.FindAllStringSubmatch(template, -1) {
		if container == found[1]+found[2]+found[3] {
			return true
		}
	}
	return false
}

// namedValue matches the key name and its value, which is in double quotes, in single quotes or plain.
var namedValue = lazyregexp.New(`\bname["']?[ \t]*:[ \t]*(?:"([^"\r\n]*)"|'([^'\r\n]*)'|([^\s,{}\[\]"'#]+))`)

// isBarePod reports whether the pod is a Pod of its own, and no workload's.
func (w *podInjection) isBarePod() bool { return len(w.template.Path) == 0 }

func (w *podInjection) restoreOptions() restoreOptions {
	return restoreOptions{names: containerNamePredicate(w.plans), bare: w.isBarePod()}
}

// hasStatus reports whether a pod has Istio's status annotation. An original has it only where no injection wrote it.
func hasStatus(pod map[string]any) bool {
	annotations, _ := workload.Annotations(pod)
	_, there := annotations[statusAnnotation]
	return there
}

// attemptUnchangedPod checks whether the pod already is the result of the policies, if what may have been its own is
// left in it. It returns nil if the pod has to change. first is the result without that, or nil.
func (w *podInjection) attemptUnchangedPod(first map[string]any) *attempt {
	if first != nil && !podmap.Equal(imagesByName(first), imagesByName(w.template.Pod)) {
		return nil // another version: no original yields the present pod
	}
	how := w.restoreOptions()
	for _, how.keep = range w.restored.waysToKeep(how.bare) {
		_, least, err := restorePod(w.template.Pod, w.template.Owner, nil, how)
		if err != nil {
			return nil
		}
		if a, err := w.applyPolicies(least); err == nil && podmap.Equal(a.after, w.template.Pod) {
			return a
		}
	}
	return nil
}

// waysToKeep returns what may have been the pod's own in an original that is tried: all of it, all but what templates
// see, or, of a bare Pod, one field alone. Templates see the annotations and containers of the original, so that all
// together may be too much.
func (r *restoredPod) waysToKeep(bare bool) []inject.Keep {
	ways := []inject.Keep{inject.KeepAll, inject.KeepMost}
	if !bare {
		return ways
	}
	var fields []string
	for _, n := range slices.Concat(r.removed.Unknown, r.removed.Assumed) {
		if !slices.Contains(fields, n.Field) {
			fields = append(fields, n.Field)
			ways = append(ways, inject.KeepOnly(n.Field))
		}
	}
	return ways
}

// withoutLeftovers returns what a bare Pod would be without what an earlier injection may have set and no other
// would. It returns nil if the Pod has no such leftovers.
func (w *podInjection) withoutLeftovers() map[string]any {
	if !w.isBarePod() || len(w.restored.removed.Unknown) == 0 {
		return nil
	}
	how := w.restoreOptions()
	how.doubtful = true
	_, without, err := restorePod(w.template.Pod, w.template.Owner, nil, how)
	if err != nil {
		return nil
	}
	if a, err := w.applyPolicies(without); err == nil && !podmap.Equal(a.after, w.template.Pod) {
		return a.after
	}
	return nil
}

// reportUnchanged warns of a pod that stays as it is although injecting into the known original yields other, nil for
// none: it names the first field in which they differ, as an earlier injection with other settings may have set it.
func (a *attempt) reportUnchanged(other map[string]any) {
	if other != nil {
		a.add(result.Warning, firstDifference(a.of.template.Pod, other),
			"taking an earlier injection out: this stays, because the pod may have had it of its own; take it out if it was injected with other settings")
	}
}

// onlyOrdersVolumes reports whether a bare Pod differs from the present one only in the order of its volumes, which
// has no meaning. The order came from volumes of the Pod's own under Istio's names, which is not recorded anywhere.
func (w *podInjection) onlyOrdersVolumes(after map[string]any) bool {
	return w.isBarePod() && w.restored.injected && podmap.Equal(withSortedVolumes(after), withSortedVolumes(w.template.Pod))
}

// withSortedVolumes returns a pod with its volumes sorted by name.
func withSortedVolumes(pod map[string]any) map[string]any {
	spec, _ := pod["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	sorted := slices.SortedStableFunc(slices.Values(volumes), func(a, b any) int {
		x, _ := a.(map[string]any)
		y, _ := b.(map[string]any)
		return strings.Compare(fmt.Sprint(x["name"]), fmt.Sprint(y["name"]))
	})
	pod, spec = maps.Clone(pod), maps.Clone(spec)
	if len(sorted) > 0 {
		spec["volumes"] = sorted
	}
	pod["spec"] = spec
	return pod
}

// imagesByName returns the images of a pod's containers by their names.
func imagesByName(pod map[string]any) map[string]any {
	out := map[string]any{}
	for name, c := range containersByName(pod) {
		out[name] = c["image"]
	}
	return out
}
