// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// Status is how a case came out.
type Status string

// The outcomes of a case.
const (
	Equal               Status = "equal"
	EqualButWebhookOnly Status = "equal but for webhook-only fields"
	Different           Status = "different"
	Failed              Status = "error"
)

// Outcome is what became of a case.
type Outcome struct {
	Case   *Case
	Status Status
	// Detail is the difference or the error.
	Detail string
	// Notes lists the rules by which the comparison differs from comparing the whole objects.
	Notes []string
}

// Injector makes the case's injector. Its templates see the pods as they are written: Istio's own test calls its
// injector without an API server before it.
func (c *Case) Injector() (*istio.Injector, error) { return c.InjectorSeeing(istio.AdmissionRaw) }

// InjectorSeeing makes the case's injector, whose templates see the pods in a way.
func (c *Case) InjectorSeeing(admission istio.Admission) (*istio.Injector, error) {
	o := istio.Options{
		Version: c.version.String(), Revision: c.Revision, IstiodEnv: maps.Clone(c.IstiodEnv),
		Native: istio.NativeDisabled, Admission: admission,
	}
	if c.NativeSidecars {
		o.Native = istio.NativeEnabled
	}
	if c.CompliancePolicy != "" {
		if o.IstiodEnv == nil {
			o.IstiodEnv = map[string]string{}
		}
		o.IstiodEnv["COMPLIANCE_POLICY"] = c.CompliancePolicy
	}
	var err error
	for _, f := range []struct {
		path string
		to   *string
	}{{c.Config, &o.Config}, {c.Values, &o.Values}, {c.Mesh, &o.Mesh}} {
		if *f.to, err = c.readCaseFile(f.path); err != nil {
			return nil, err
		}
	}
	return istio.New(o)
}

// Objects are the objects of a file of the case, in order, without empty documents.
func (c *Case) Objects(path string) ([]map[string]any, error) {
	text, err := c.readCaseFile(path)
	if err != nil {
		return nil, err
	}
	f, err := manifest.Parse(path, []byte(text))
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, d := range f.Docs {
		obj, err := d.Object()
		if err != nil {
			return nil, err
		}
		if len(obj) > 0 {
			out = append(out, obj)
		}
	}
	return out, nil
}

// Injected is what the engine makes of a case's input.
type Injected struct {
	Objects         []map[string]any
	Warnings, Notes []string
}

// Inject injects into the case's input.
func (c *Case) Inject() (Injected, error) {
	in, err := c.Injector()
	if err != nil {
		return Injected{}, err
	}
	objects, err := c.Objects(c.Input)
	if err != nil {
		return Injected{}, err
	}
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return Injected{}, err
	}
	w := worker{c: c, in: in, registry: registry}
	for i := range objects {
		if objects[i], err = w.injectObject(objects[i]); err != nil {
			return Injected{}, err
		}
	}
	return Injected{Objects: objects, Warnings: w.warnings, Notes: w.notes}, nil
}

// worker injects into one object.
type worker struct {
	c        *Case
	in       *istio.Injector
	registry *workload.Registry
	warnings []string
	notes    []string
	// again reports whether the pods have been injected on purpose.
	again bool
}

// cronJobNote is the rule for CronJobs.
const cronJobNote = "istioctl kube-inject takes a CronJob's metadata of the job for the pod's; so it is compared there, and the webhook has it at the pod"

func (w *worker) injectObject(obj map[string]any) (map[string]any, error) {
	switch obj["kind"] {
	case "List":
		return w.injectListItems(obj)
	case "CronJob":
		if w.c.Path != "kube-inject" {
			break
		}
		w.notes = append(w.notes, cronJobNote)
		swapped, err := w.injectPodTemplates(swapJobMetadata(obj))
		return swapJobMetadata(swapped), err
	}
	return w.injectPodTemplates(obj)
}

// swapJobMetadata puts the metadata of a CronJob's job in the place of its pod's, and the other way round.
func swapJobMetadata(obj map[string]any) map[string]any {
	out := deepCopy(obj)
	spec, _ := out["spec"].(map[string]any)
	job, _ := spec["jobTemplate"].(map[string]any)
	jobSpec, _ := job["spec"].(map[string]any)
	pod, _ := jobSpec["template"].(map[string]any)
	if pod == nil {
		return obj
	}
	job["metadata"], pod["metadata"] = pod["metadata"], job["metadata"]
	return out
}

func deepCopy(obj map[string]any) map[string]any { return runtime.DeepCopyJSON(obj) }

func (w *worker) injectPodTemplates(obj map[string]any) (map[string]any, error) {
	templates, err := w.registry.Templates(obj)
	if err != nil {
		return nil, err
	}
	for _, t := range templates {
		leave, err := w.leavesPodAlone(t)
		if err != nil {
			return nil, err
		}
		if leave {
			continue
		}
		req := inject.Request{Pod: t.Pod, Owner: t.Declared}
		if w.c.Path == "webhook" {
			req.Owner = t.OwnerFor(w.in.Profile().Release())
		}
		req.Namespace.Name = t.Declared.Namespace
		req.Namespace.Annotations, req.Namespace.Known = w.c.NamespaceAnnotations[t.Declared.Namespace], true
		result, err := inject.Istio(w.in, req)
		if err != nil {
			return nil, fmt.Errorf("injecting into %s %s: %w", t.Declared.Kind, t.Declared.Name, err)
		}
		w.warnings = append(w.warnings, result.Warnings...)
		obj = t.Write(obj, result.Pod)
	}
	return obj, nil
}

// leavesPodAlone reports whether a pod is left as it is.
func (w *worker) leavesPodAlone(t workload.Template) (bool, error) {
	if w.c.Path == "kube-inject" && !w.again && skipsInjectedPod(w.in.Profile().Minor(), t.Pod) {
		w.notes = append(w.notes, injectedNote)
		return true, nil
	}
	why, err := kubeInjectSkipReason(w.in, t)
	if err != nil || why == "" {
		return false, err
	}
	if w.c.Path == "kube-inject" && why == annotated && w.in.Profile().Minor() <= lastUndecided &&
		w.c.expectsInjection(t) {
		w.notes = append(w.notes, annotatedNote)
		return false, nil
	}
	w.warnings = append(w.warnings, fmt.Sprintf("%s %s: %s", t.Declared.Kind, t.Declared.Name, why))
	return true, nil
}

func (w *worker) injectListItems(obj map[string]any) (map[string]any, error) {
	items, _ := obj["items"].([]any)
	out := make([]any, len(items))
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			out[i] = item
			continue
		}
		injected, err := w.injectObject(m)
		if err != nil {
			return nil, err
		}
		out[i] = injected
	}
	obj = maps.Clone(obj)
	obj["items"] = out
	return obj, nil
}

// Run injects and compares.
func (c *Case) Run() Outcome {
	got, err := c.Inject()
	switch {
	case c.ExpectError != "":
		return c.expectError(err)
	case err != nil:
		return Outcome{Case: c, Status: Failed, Detail: err.Error()}
	}
	want, err := c.Objects(c.Expected)
	if err != nil {
		return Outcome{Case: c, Status: Failed, Detail: err.Error()}
	}
	if c.ExpectWarning != "" && !hasMatchingWarning(got.Warnings, c.ExpectWarning) {
		return Outcome{Case: c, Status: Different,
			Detail: fmt.Sprintf("no warning contains %q; the warnings are %q", c.ExpectWarning, got.Warnings)}
	}
	return c.compareInjected(got, want)
}

// hashMinor is the last minor version whose status has a hash of the template.
const hashMinor = 8

// compareInjected compares what was injected with what is expected, by the rules of the version.
func (c *Case) compareInjected(got Injected, want []map[string]any) Outcome {
	ours, theirs := c.flattenForComparison(got.Objects), c.flattenForComparison(want)
	fail := func(err error) Outcome {
		return Outcome{Case: c, Status: Failed, Detail: err.Error(), Notes: got.Notes}
	}
	var err error
	if c.version.Minor <= hashMinor {
		for _, list := range [][]map[string]any{ours, theirs} {
			for i := range list {
				if list[i], err = blankHash(list[i]); err != nil {
					return fail(err)
				}
			}
		}
	}
	if c.Revision == "" && revisionLabels.Contains(c.version.Release()) {
		for i := range ours {
			var blanked bool
			if ours[i], blanked, err = blankRevision(ours[i]); err != nil {
				return fail(err)
			}
			if blanked && !slices.Contains(got.Notes, revisionNote) {
				got.Notes = append(got.Notes, revisionNote)
			}
		}
	}
	for i := range theirs {
		var dropped bool
		if theirs[i], dropped, err = keepLastEntries(theirs[i]); err != nil {
			return fail(err)
		}
		if dropped && !slices.Contains(got.Notes, podmap.KeepLastRule) {
			got.Notes = append(got.Notes, podmap.KeepLastRule)
		}
	}
	diff, err := diffObjectLists(ours, theirs)
	if err != nil {
		return fail(err)
	}
	if diff == "" {
		return Outcome{Case: c, Status: Equal, Notes: got.Notes}
	}
	if c.Path != "kube-inject" || len(ours) != len(theirs) {
		return Outcome{Case: c, Status: Different, Detail: diff, Notes: got.Notes}
	}
	reasons, diff, err := c.compareWithoutWebhookOnly(ours, theirs, diff)
	switch {
	case err != nil:
		return fail(err)
	case diff == "":
		return Outcome{Case: c, Status: EqualButWebhookOnly, Detail: strings.Join(reasons, "; "), Notes: got.Notes}
	}
	return Outcome{Case: c, Status: Different, Detail: diff, Notes: got.Notes}
}

// compareWithoutWebhookOnly takes out of our objects what only the webhook does, and returns the reasons and the
// difference that is left. diff is the one with all of it.
func (c *Case) compareWithoutWebhookOnly(ours, theirs []map[string]any,
	diff string) (reasons []string, left string, err error) {
	for i := range ours {
		var why []string
		if ours[i], why, err = c.withoutWebhookOnly(ours[i], theirs[i]); err != nil {
			return nil, "", err
		}
		reasons = append(reasons, why...)
	}
	if len(reasons) == 0 {
		return nil, diff, nil
	}
	slices.Sort(reasons)
	left, err = diffObjectLists(ours, theirs)
	return slices.Compact(reasons), left, err
}

// flattenForComparison returns objects one by one, with a CronJob's metadata where the webhook has it.
func (c *Case) flattenForComparison(objects []map[string]any) []map[string]any {
	out := expandListItems(objects)
	for i, obj := range out {
		if obj["kind"] == "CronJob" && c.Path == "kube-inject" {
			out[i] = swapJobMetadata(obj)
		}
	}
	return out
}

func (c *Case) expectError(err error) Outcome {
	if err == nil {
		err = errors.New("none")
	}
	if strings.Contains(strings.ToLower(err.Error()), c.ExpectError) {
		return Outcome{Case: c, Status: Equal}
	}
	return Outcome{Case: c, Status: Different, Detail: fmt.Sprintf("want an error that contains %q, got: %v", c.ExpectError, err)}
}

// hasMatchingWarning reports whether one of the warnings matches Istio's. Prerig's wording is its own, so only the
// reason has to be the same: the only reason for an Istio warning in a corpus is host networking.
func hasMatchingWarning(warnings []string, want string) bool {
	reasons := []string{want}
	if strings.Contains(want, "host network") {
		reasons = []string{"host network", "host's network", "hostNetwork"}
	}
	for _, w := range warnings {
		for _, reason := range reasons {
			if strings.Contains(w, reason) {
				return true
			}
		}
	}
	return false
}
