// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/openapi"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/policy"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// Admit returns the pods that an API server would store for the workloads of a request.
func Admit(ctx context.Context, asked *render.AdmitRequest) (*render.Admitted, error) {
	options := asked.Options
	var err error
	if options.Catalog, err = readDocuments(asked.Catalog); err != nil {
		return nil, err
	}
	server, err := openapi.NewServer(options.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	c := &checker{server: server}
	var groups []*admitGroup
	var all []gate.Object
	for i := range asked.Groups {
		g, err := readGroup(c, &asked.Groups[i], asked.Share || sharesAlways())
		if err != nil {
			return nil, err
		}
		groups, all = append(groups, g), append(all, g.objects...)
	}
	policies, err := parseGroupPolicies(asked.Groups, &options)
	if err != nil {
		return nil, err
	}
	c.addDefinitions(all, options.Catalog)
	admission, err := newAdmissionCheck(c, all, options)
	if err != nil {
		return nil, err
	}
	c.results = nil // findings about definitions are those of the gate
	known := slices.Concat(options.Catalog, all)
	written := map[kindAndName]gate.Object{}
	for _, o := range known {
		if o.File != nil {
			ref := o.Ref()
			written[kindAndName{ref.Kind, ref.Namespace, ref.Name}] = o
		}
	}
	out := &render.Admitted{}
	for i, g := range groups {
		p := &prediction{admissionCheck: admission, why: asked.Why, created: asked.Created, written: written, known: known}
		if p.webhooks, err = newWebhooks(policies[i], known); err != nil {
			return nil, err
		}
		p.addTouches()
		if err := p.admitGroup(ctx, g, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseGroupPolicies returns the policies of groups, and adds to the options what they describe of the cluster's admission.
func parseGroupPolicies(groups []render.AdmitGroup, options *gate.Options) ([][]*v1alpha1.InjectionPolicy, error) {
	var out [][]*v1alpha1.InjectionPolicy
	for _, g := range groups {
		var policies []*v1alpha1.InjectionPolicy
		for _, text := range g.Policies {
			p, err := v1alpha1.Parse(text)
			if err != nil {
				return nil, err
			}
			policies = append(policies, p)
		}
		options.AddPolicies(policies)
		out = append(out, policies)
	}
	return out, nil
}

// kindAndName is what a cause names of an object.
type kindAndName struct{ kind, namespace, name string }

// prediction is the admission of the pods of one group.
type prediction struct {
	*admissionCheck

	why      bool
	created  bool
	written  map[kindAndName]gate.Object
	known    []gate.Object
	webhooks *webhooks
	touches  *policy.Touches // what policies and selectors read
	pods     []*predicted
	// made is the workload with made-up values whose pods begin; nil for others.
	made *madeUp
	// ordered reports that no order decides what becomes of the pods that begin.
	ordered bool
}

// predicted is one pod on its way.
type predicted struct {
	object   gate.Object
	template workload.Template
	file     map[string]any // the pod as it is written
	*chain.Admission
	trace *chain.Trace
	made  *madeUp // whose pod it is; nil for others
	// unread is the reason for which the pod cannot be read, and injection what the injection decided.
	unread, injection string
	// injectedBy is the cause of what the injection has changed; empty if it has changed nothing.
	injectedBy string
	// unpredicted are the webhooks whose changes are not known.
	unpredicted []string
}

// beginObjects runs the steps before webhooks for each pod of objects.
func (p *prediction) beginObjects(ctx context.Context, objects []gate.Object) {
	for _, o := range objects {
		if isEncrypted(o.Value) || isLocal(o.Value) {
			continue
		}
		templates, err := p.registry.Templates(o.Value)
		if err != nil {
			continue // the gate reports what is wrong with it
		}
		for _, t := range templates {
			p.pods = append(p.pods, p.begin(ctx, o, t))
		}
	}
}

// complete runs the webhooks for pods that have passed the steps before, and the second round for all.
func (p *prediction) complete(ctx context.Context, called, all []*predicted) error {
	for _, one := range called {
		if one.made != nil && one.Admission != nil && p.webhooks.injector != nil {
			one.made.seeAdded(one.Pod, one.file)
		}
	}
	if err := p.webhooks.call(ctx, p.admissionCheck, called); err != nil {
		return err
	}
	for _, one := range all {
		if one.Admission == nil {
			continue
		}
		changed := one.Again(ctx)
		p.webhooks.nameUnknown(p.admissionCheck, one, changed)
		one.see()
		one.Finish()
		one.see()
	}
	return nil
}

// addTouches finds what policies and selectors read.
func (p *prediction) addTouches() {
	p.touches = &policy.Touches{}
	p.policies.AddTouches(p.touches)
	p.chain.Policies.AddTouches(p.touches)
	for _, c := range p.webhooks.known {
		for i := range c.Webhooks {
			p.policies.AddWebhook(p.touches, &c.Webhooks[i])
		}
	}
}

// begin reads a pod, and runs the steps before webhooks.
func (p *prediction) begin(ctx context.Context, o gate.Object, t workload.Template) *predicted {
	one := &predicted{object: o, template: t, file: t.Pod}
	if p.why {
		one.trace = &chain.Trace{}
	}
	r, err := p.podRequest(o, t)
	if err != nil {
		one.unread = "reading the pod: " + err.Error()
		return one
	}
	one.Admission = p.chain.New(r, one.trace)
	one.Ordered = p.ordered
	if one.made = p.made; one.made != nil {
		one.Seen = p.made.see
	}
	p.lackDrawn(one)
	p.first(ctx, one)
	return one
}

// lackDrawn names the labels of the pod whose values only a cluster knows, if a policy or a selector may read them.
func (p *prediction) lackDrawn(one *predicted) {
	for _, key := range request.DrawnLabels(one.template.Owner) {
		if p.touches.Reads([]any{"metadata", "labels", key}) {
			one.lack("the label " + key + ", whose value the controller draws: a policy or a selector may read it")
		}
	}
}

// first runs the steps before webhooks.
func (p *prediction) first(ctx context.Context, one *predicted) {
	if one.trace != nil {
		created := podParts(createdPod(one))
		one.trace.Record(podParts(one.file), created, chain.Cause{Step: one.template.Owner.Kind + " controller"})
		one.trace.Record(created, podParts(chain.Map(one.Pod)), chain.Cause{Step: "defaults", Detail: "Kubernetes " + p.server.Minor})
	}
	one.Mutate(ctx)
}

// see shows the pod to what follows made-up values.
func (p *predicted) see() {
	if p.Seen != nil {
		p.Seen(p.Pod)
	}
}

// podRequest returns the request that creates the pod.
func (p *prediction) podRequest(o gate.Object, t workload.Template) (*request.Request, error) {
	if len(t.Path) == 0 {
		return p.maker.Make(o.Value, request.PodKind)
	}
	return p.maker.PodOf(o.Value, t)
}

// finish returns the answer for a pod, after the steps that validate.
func (p *prediction) finish(ctx context.Context, one *predicted) render.AdmittedPod {
	out := render.AdmittedPod{Ref: namedRef(one.object), Place: placeIn(one.object, one.template.Path), Field: one.template.Field, Rejected: one.unread, Injection: one.injection}
	if one.Admission == nil {
		return out
	}
	out.Pod, out.Webhooks = storedPod(one), one.unpredicted
	if p.created {
		out.Created = createdPod(one)
	}
	if out.Rejected = one.Rejected; out.Rejected == "" {
		p.validate(ctx, one, &out)
	}
	if out.Rejected == "" {
		one.CheckQuotas()
		out.Rejected = one.Rejected
	}
	out.Missing = append(out.Missing, one.Missing...)
	slices.Sort(out.Missing)
	if one.trace == nil {
		return out
	}
	for _, c := range one.trace.Reasons(podParts(one.file), podParts(out.Pod)) {
		out.Reasons = append(out.Reasons, render.Reason{
			Field: c.Path, Before: c.Before, After: c.After, Step: c.Cause.Step, Object: c.Cause.Object, Place: p.placeOf(c.Cause),
			Detail: c.Cause.Detail, Round: c.Cause.Round,
		})
	}
	return out
}

// validate adds the verdicts of Pod Security and ValidatingAdmissionPolicies.
func (p *prediction) validate(ctx context.Context, one *predicted, out *render.AdmittedPod) {
	p.results = nil
	r := one.Request()
	p.checkRequest(ctx, one.object, r)
	prefix := "the pods of " + r.Of + ": "
	for _, found := range p.results {
		message := strings.TrimPrefix(found.Message, prefix)
		switch found.Tags[result.TagCode] {
		case gate.CodePolicyDenied, gate.CodeSecurityEnforce:
			out.Rejected = cmp.Or(out.Rejected, message)
		default:
			out.Warnings = append(out.Warnings, message)
		}
	}
	p.results = nil
	for gap, text := range p.policies.Gaps() {
		kind := "ValidatingAdmissionPolicy " + gap.Policy
		if gap.Policy == "" {
			kind = "ValidatingAdmissionPolicyBinding " + gap.Binding
		}
		out.Missing = append(out.Missing, kind+" "+text)
	}
	p.policies.ForgetGaps()
}

// placeOf returns where the object of a cause is written.
func (p *prediction) placeOf(cause chain.Cause) render.LinePlace {
	kind, name, _ := strings.Cut(cause.Object, " ")
	namespace := ""
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	if o, found := p.written[kindAndName{kind, namespace, name}]; found {
		return placeIn(o, cause.Path)
	}
	return render.LinePlace{}
}

// placeIn returns where a field of an object is written.
func placeIn(o gate.Object, path []any) render.LinePlace {
	file := o.Place(path)
	if file == nil {
		return render.LinePlace{}
	}
	return render.LinePlace{Path: file.Path, Line: file.Line}
}

// storedPod returns the pod as it is printed: without the status, and without what only a server knows.
func storedPod(one *predicted) map[string]any {
	pod := chain.Map(one.Pod)
	delete(pod, "status")
	metadata, _ := pod["metadata"].(map[string]any)
	delete(metadata, "creationTimestamp")
	if one.Pod.GenerateName != "" {
		delete(metadata, "name")
	}
	if owners, _ := metadata["ownerReferences"].([]any); len(owners) > 0 {
		for _, owner := range owners {
			if fields, ok := owner.(map[string]any); ok {
				delete(fields, "uid")
			}
		}
	}
	return pod
}

// createdPod returns the pod as it is created, before any admission.
func createdPod(one *predicted) map[string]any {
	if len(one.template.Path) > 0 {
		return request.NewPod(one.object.Value, one.template)
	}
	pod := maps.Clone(one.object.Value)
	delete(pod, "status")
	return pod
}

// podParts returns what of a pod a reviewer compares: labels, annotations and the spec.
func podParts(pod map[string]any) map[string]any {
	metadata, _ := pod["metadata"].(map[string]any)
	out := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		if fields, ok := metadata[key].(map[string]any); ok {
			out[key] = fields
		}
	}
	return map[string]any{"metadata": out, "spec": pod["spec"]}
}

// replace takes the pod that a webhook returns, with the API server's defaults.
func (a *admissionCheck) replace(one *predicted, pod map[string]any) error {
	whole := chain.Map(&corev1.Pod{TypeMeta: one.Pod.TypeMeta, ObjectMeta: one.Pod.ObjectMeta})
	metadata, _ := whole["metadata"].(map[string]any)
	parts := podParts(pod)
	delete(metadata, "labels")
	delete(metadata, "annotations")
	maps.Copy(metadata, parts["metadata"].(map[string]any))
	whole["spec"] = parts["spec"]
	made, err := a.maker.Make(whole, request.PodKind)
	if err != nil {
		return fmt.Errorf("reading what a webhook returns: %w", err)
	}
	typed, _ := made.Object.(*corev1.Pod)
	typed.Name = one.Pod.Name
	one.Webhook(typed)
	return nil
}
