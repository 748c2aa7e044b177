// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// Request is one pod to inject.
type Request struct {
	// Pod has the keys metadata and spec. It is not changed.
	Pod map[string]any
	// Owner is the workload that the pod belongs to.
	Owner workload.Owner
	// Controller is the workload that makes the pod, as far as templates read it in the pod's metadata.
	Controller Controller
	// Namespace is the one that the pod will run in.
	Namespace Namespace
	// Account is the service account that the pod will run as.
	Account Account
	// Limits are the LimitRanges of the namespace, as far as they are known.
	Limits []admission.LimitRange
	// FromOriginal first removes any existing injection, of whatever version (see Remove), so that the result
	// equals an injection into the original. Without it, an injected pod is injected as the webhook does when it
	// sees a pod again: the templates are merged over the existing proxy, and what they do not set stays.
	// Configurations of Istio up to 1.8, which do not merge, always begin with the original.
	FromOriginal bool
	// KeepListed keeps the containers and volumes that a status annotation lists but no injection wrote (see
	// Remove). The webhook of Istio up to 1.8 removes them; later versions never do.
	KeepListed bool
	// RecordNulls records null fields of the pod's own istio-proxy in the annotation proxy.istio.io/overrides. The
	// webhook never sees them and does not record them; they have no meaning to it. It is for pods that have no
	// other record.
	RecordNulls bool
}

// Namespace is what is known about a pod's namespace.
type Namespace struct {
	Name                string
	Labels, Annotations map[string]string
	// Known reports whether the labels and annotations are known, as opposed to known to be empty.
	Known bool
}

// Result is an injected pod.
type Result struct {
	// Pod is the request's pod with the injection. It shares no memory with the request.
	Pod map[string]any
	// Warnings are for the user, each a sentence without a full stop.
	Warnings []string
	// Unquoted are the annotations whose values write YAML into the pod, because a template prints them without quotes; each
	// with the fields that it changes, as paths in the pod.
	Unquoted map[string][]string
	// Dropped are the keys under which the webhook writes several entries into one list. The pod has the last of each.
	Dropped []podmap.Dropped
}

// Istio does to a pod what the webhook of the injector's version does to it. The error is a *podmap.FieldError or an
// *gotemplate.Error where it is about one field or one template.
func Istio(in *istio.Injector, req Request) (Result, error) {
	removed := Removed{Pod: req.Pod}
	if req.FromOriginal || in.Detection().Generation != istio.GenerationC {
		var err error
		if removed, err = Remove(RemoveRequest{Pod: req.Pod, Owner: req.Owner, All: true}); err != nil {
			return Result{}, err
		}
	}
	pod, err := newPod(removed.Pod)
	if err != nil {
		return Result{}, err
	}
	pod.readNulls()
	if err := validateAnnotations(in, pod.annotations()); err != nil {
		return Result{}, err
	}
	r := &run{in: in, req: req, written: removed.Pod, admitted: pod}
	for _, n := range removed.Unknown {
		r.warnings.addf("injecting again: %s", n)
	}
	if in.APIServer() != nil {
		applyAdmissionDefaults(in.APIServer().WithLimits(req.Limits), pod)
		addPullSecrets(pod, req.Account)
	}
	out, replaced, err := r.injectPodCopy()
	if err != nil {
		return Result{}, blameAnnotation(pod, err)
	}
	dropped, err := podmap.KeepLast(pod.podMapParts(), out.podMapParts())
	if err != nil {
		return Result{}, err
	}
	if in.APIServer() == nil {
		out.writeNulls(r.written)
	} else {
		r.warnOfPullSecrets(out)
		user, seen := withoutReplacedElements(replaced, r.written, pod)
		out = removeDefaultedFields(in.APIServer().WithLimits(req.Limits), user, seen, out)
	}
	return Result{Pod: out.toPodObject(), Warnings: r.warnings, Unquoted: r.unquoted, Dropped: dropped}, nil
}

// run is one injection: what its steps read, and what they leave for the user.
type run struct {
	in  *istio.Injector
	req Request
	// written is the pod as the user wrote it, and admitted the same as the webhook sees it. Neither must be changed.
	written  map[string]any
	admitted *pod
	// before is the pod as the webhook sees it, without the fields that OpenShift sets, and without the elements that
	// Istio up to 1.8 replaces.
	before   *pod
	warnings warnings
	// unquoted is the result's.
	unquoted map[string][]string
}

// warnings are sentences for the user.
type warnings []string

func (w *warnings) addf(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

// injectPodCopy injects into a copy of the pod that the webhook sees. It also returns the names of the elements that
// were taken out of the pod's lists for the template's, by list. Istio up to 1.8 does that.
func (r *run) injectPodCopy() (*pod, map[string][]string, error) {
	p := r.admitted.deepCopy()
	if r.in.Detection().Generation == istio.GenerationC {
		return p, nil, r.mergeRenderedTemplates(p)
	}
	replaced := r.removeFormer(p)
	return p, replaced, r.appendFormerGeneration(p)
}
