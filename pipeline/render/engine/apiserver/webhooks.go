// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// webhooks are the mutating webhooks of the cluster: those that policies stand for, and the configurations of all.
type webhooks struct {
	injector *fn.Injector // nil without policies
	policies []*v1alpha1.InjectionPolicy
	// cluster are the documents that the injection reads beside the workloads.
	cluster []fn.Item
	// known are the configurations, in the order of their names.
	known []*admissionv1.MutatingWebhookConfiguration
}

// newWebhooks reads the configurations, and takes policies without those whose injection is to be ignored.
func newWebhooks(policies []*v1alpha1.InjectionPolicy, known []gate.Object) (*webhooks, error) {
	w := &webhooks{}
	for _, p := range policies {
		if slices.Contains(p.Spec.Admission.Ignored(), v1alpha1.StepWebhook) || p.Spec.Istio == nil && len(p.Spec.Sidecars) == 0 {
			continue
		}
		p.Spec.Admission = nil // the steps before the injection are those of the prediction
		p.Spec.Mode, p.Spec.Images, p.Spec.Lint = v1alpha1.ModeInject, nil, &v1alpha1.Lint{Disabled: true}
		if p.Spec.Istio != nil {
			p.Spec.Istio.RuntimeWebhook = v1alpha1.RuntimeWebhookKeep
		}
		w.policies = append(w.policies, p)
	}
	for _, o := range known {
		ref := o.Ref()
		if ref.Kind != "MutatingWebhookConfiguration" {
			continue
		}
		var typed admissionv1.MutatingWebhookConfiguration
		if request.Decode(o.Value, &typed) == nil {
			w.known = slices.DeleteFunc(w.known, func(c *admissionv1.MutatingWebhookConfiguration) bool { return c.Name == typed.Name })
			w.known = append(w.known, &typed)
		}
	}
	slices.SortFunc(w.known, func(a, b *admissionv1.MutatingWebhookConfiguration) int { return cmp.Compare(a.Name, b.Name) })
	if len(w.policies) == 0 {
		return w, nil
	}
	var err error
	if w.injector, err = fn.New(w.policies, fn.WithPods()); err != nil {
		return nil, err
	}
	for _, o := range known {
		if !holdsPods(o) {
			item, err := itemOf(o.Value, "")
			if err != nil {
				return nil, err
			}
			w.cluster = append(w.cluster, item)
		}
	}
	return w, nil
}

// holdsPods reports whether an object has pod templates.
func holdsPods(o gate.Object) bool {
	found, err := templates.Templates(o.Value)
	return err != nil || len(found) > 0
}

// itemOf returns an object as a document of a file with a name.
func itemOf(object map[string]any, name string) (fn.Item, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return fn.Item{}, err
	}
	file, err := manifest.Parse(name, text)
	if err != nil {
		return fn.Item{}, err
	}
	return fn.Item{Doc: file.Docs[0], Path: name}, nil
}

// call has the injection change the pods. Each is in the template of its workload, so that the injection knows its owner.
func (w *webhooks) call(ctx context.Context, a *admissionCheck, pods []*predicted) error {
	if w.injector == nil {
		return nil
	}
	items := slices.Clip(w.cluster)
	for i, one := range pods {
		if one.Admission == nil || one.Rejected != "" {
			continue
		}
		if isInjected(one.file) {
			one.lack("what the mesh's webhook does to a pod that is injected already: it is taken to leave it alone")
			continue
		}
		whole := chain.Map(one.Pod)
		now := podParts(whole)
		if len(one.template.Path) == 0 {
			now["metadata"] = whole["metadata"]
		}
		item, err := itemOf(one.template.Write(one.object.Value, now), strconv.Itoa(i))
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	report, err := w.injector.Run(ctx, items)
	if err != nil {
		return err
	}
	errs := map[string]string{}
	for _, r := range report.Results {
		if r.Severity == result.Error && r.File != nil && errs[r.File.Path] == "" {
			errs[r.File.Path] = r.Message
		}
	}
	for _, outcome := range report.Outcomes {
		i, err := strconv.Atoi(outcome.File.Path)
		if err != nil || outcome.Field != pods[i].template.Field {
			continue // another template of the same workload, which has an item of its own
		}
		if err := takeOutcome(a, pods[i], outcome, errs[outcome.File.Path]); err != nil {
			return err
		}
	}
	return nil
}

// lack names an input that is not known.
func (p *predicted) lack(text string) {
	if !slices.Contains(p.Missing, text) {
		p.Missing = append(p.Missing, text)
	}
}

// isInjected reports whether a pod is injected by Istio in the file already.
func isInjected(pod map[string]any) bool {
	metadata, _ := pod["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[statusAnnotation] != nil
}

// takeOutcome takes the outcome of the injection for a pod.
func takeOutcome(a *admissionCheck, one *predicted, outcome fn.Outcome, failed string) error {
	one.injection = string(outcome.Action) + ": " + outcome.Reason
	if outcome.Action == fn.Failed {
		one.Rejected = "webhook: " + cmp.Or(failed, outcome.Reason)
	}
	if outcome.Action != fn.Injected {
		return nil
	}
	if one.trace == nil {
		return a.replace(one, outcome.After)
	}
	before, cause := chain.Map(one.Pod), causeOf(outcome)
	if err := a.replace(one, outcome.After); err != nil {
		return err
	}
	one.injectedBy = cause.Object
	recorded := len(one.trace.Changes)
	one.trace.Record(before, chain.Map(one.Pod), cause)
	nameTemplateLines(outcome, one.trace.Changes[recorded:])
	return nil
}

// nameTemplateLines names the template, and its line, that sets each field, where the text shows that.
func nameTemplateLines(outcome fn.Outcome, changes []chain.Change) {
	var texts [][]templateLine
	for _, text := range outcome.TemplateTexts {
		texts = append(texts, readTemplateLines(text))
	}
	for i := range changes {
		deepest := leastTemplateDepth
		for j, lines := range texts {
			if number, depth := lineOfField(lines, changes[i].Path); depth >= deepest {
				deepest = depth + 1
				changes[i].Cause.Detail = fmt.Sprintf("template %s, line %d", outcome.Templates[j], number)
			}
		}
	}
}

// leastTemplateDepth is how many keys of a path a line matches at least: those of an element of a list in the spec.
const leastTemplateDepth = 3

// causeOf names the policy, templates and sidecars of an injection.
func causeOf(outcome fn.Outcome) chain.Cause {
	cause := chain.Cause{Step: "webhook"}
	if outcome.Policy != "" {
		cause.Object = "InjectionPolicy " + outcome.Policy
	}
	var from []string
	for _, name := range outcome.Templates {
		from = append(from, "template "+name)
	}
	for _, s := range outcome.Sidecars {
		if s.Inject {
			from = append(from, "sidecar "+s.Name)
		}
	}
	cause.Detail = strings.Join(from, ", ")
	return cause
}

// nameUnknown names the webhooks that the API server calls for a pod, and whose answer is not predicted. again reports
// whether the second round changed the pod.
func (w *webhooks) nameUnknown(a *admissionCheck, one *predicted, again bool) {
	if one.Rejected != "" {
		return
	}
	r := one.Request()
	for _, c := range w.known {
		for i := range c.Webhooks {
			hook := &c.Webhooks[i]
			name := c.Name + "/" + hook.Name
			if !a.policies.MayCall(hook, r) {
				continue
			}
			needed := hook.ReinvocationPolicy != nil && *hook.ReinvocationPolicy == admissionv1.IfNeededReinvocationPolicy
			covered := w.covers(name)
			switch {
			case !covered:
				one.lack("webhook " + name + ": what it changes is not known")
				one.unpredicted = append(one.unpredicted, name)
			case needed && again:
				one.lack("webhook " + name + ": its second call, after later changes, is not predicted")
				one.unpredicted = append(one.unpredicted, name)
			}
		}
	}
}

// covers reports whether a policy predicts the answer of a webhook.
func (w *webhooks) covers(name string) bool {
	return slices.ContainsFunc(w.policies, func(p *v1alpha1.InjectionPolicy) bool {
		if p.Spec.Istio != nil && strings.HasSuffix(name, "sidecar-injector.istio.io") {
			return true
		}
		return slices.ContainsFunc(p.Spec.Sidecars, func(s v1alpha1.Sidecar) bool {
			product, _, _ := strings.Cut(s.Name, "-")
			return strings.Contains(name, product)
		})
	})
}
