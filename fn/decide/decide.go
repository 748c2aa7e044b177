// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/strict"
)

// Options are what the decision depends on besides the pod.
type Options struct {
	// Release of Istio.
	Release release.Release
	// Revision of the control plane whose injector the policy has; empty is default.
	Revision string
	// RevisionTags that point to this revision.
	RevisionTags []string
	// Settings of the installation.
	Settings Settings
	// Webhooks are the cluster's own configurations. If empty, the version's built-in ones apply (BuiltIn).
	Webhooks []v1alpha1.Webhook
	// WebhookSource is the origin of Webhooks, for people.
	WebhookSource string
	// Policy of the injector's configuration: enabled or disabled.
	Policy string
	// Never and Always return the index of the first neverInjectSelector and alwaysInjectSelector of the injector's
	// configuration that matches a pod's labels, or -1. A nil function means that the configuration has no such
	// selectors.
	Never, Always func(podLabels map[string]string) int
	// UnknownNamespace is the policy's setting for unknown namespaces; empty means Inject if the policy names no
	// namespace and Webhooks is empty, otherwise Fail.
	UnknownNamespace v1alpha1.UnknownNamespace
	// NamesNamespaces reports whether the policy has an entry in namespaces.
	NamesNamespaces bool
	// CNI reports whether Istio's CNI plugin redirects the traffic.
	CNI bool
}

// Namespace is what is known of the namespace that a pod will run in.
type Namespace struct {
	// Name, empty where it is not known.
	Name string `json:"name,omitempty"`
	// Labels of it. They mean something only if Known.
	Labels map[string]string `json:"labels,omitempty"`
	// Known distinguishes known labels from labels that are merely empty.
	Known bool `json:"known"`
	// Source is the origin of the labels, such as a file or "the policy".
	Source string `json:"source,omitempty"`
}

// Pod is what the decision reads of a pod.
type Pod struct {
	// Labels and Annotations of the pod, or of the template that it is made of.
	Labels, Annotations map[string]string
	// HostNetwork is spec.hostNetwork.
	HostNetwork bool
	// Workload is the kind of the controller, such as Job. Controllers put labels on their pods that a selector may ask
	// for.
	Workload string
	// Name of the controller, which a Job's pods have as a label.
	Name string
	// Namespace that it will run in.
	Namespace Namespace
}

// Decider decides for pods. It does not change after New and may be used by any number of goroutines.
type Decider struct {
	options Options
	hooks   webhookSet
	profile podProfile
	unknown v1alpha1.UnknownNamespace
	// source is the origin of the webhooks.
	source string
}

// webhookSet are the webhook configurations of a cluster.
type webhookSet []compiledWebhook

// compiledWebhook is a webhook configuration, made ready.
type compiledWebhook struct {
	match Match // Without the rule.
	ours  bool
	rules []hookRule
}

type hookRule struct {
	name              string
	namespace, object selector
	// conditions reports whether the rule has CEL conditions, which are not evaluated.
	conditions bool
}

// New makes a Decider. It fails for a selector that the API server would not take.
func New(o Options) (*Decider, error) {
	d := &Decider{options: o, profile: podProfileOf(o.Release), unknown: o.UnknownNamespace, source: o.WebhookSource}
	if d.unknown == "" {
		d.unknown = v1alpha1.UnknownNamespaceInject
		if o.NamesNamespaces || len(o.Webhooks) > 0 {
			d.unknown = v1alpha1.UnknownNamespaceFail
		}
	}
	configs := o.Webhooks
	if len(configs) == 0 {
		configs = BuiltIn(o.Release, o.Revision, o.RevisionTags, o.Settings)
		d.source = fmt.Sprintf("Istio 1.%d", o.Release.Minor)
	} else if d.source == "" {
		d.source = "the policy"
	}
	for _, c := range configs {
		h, err := compileWebhook(c, d.source, o.Revision)
		if err != nil {
			return nil, err
		}
		d.hooks = append(d.hooks, h)
	}
	return d, nil
}

// compileWebhook compiles a configuration. own is the policy's revision.
func compileWebhook(c v1alpha1.Webhook, source, own string) (compiledWebhook, error) {
	revision := revisionOrDefault(c.Revision)
	own = revisionOrDefault(own)
	h := compiledWebhook{match: Match{Config: c.Name, Revision: revision, Source: source},
		ours: c.Revision == "" || revision == own}
	if h.ours {
		h.match.Revision = own
	}
	if tag, ok := strings.CutPrefix(c.Name, tagPrefix); ok {
		h.match.Tag = tag
	}
	for _, r := range c.Webhooks {
		namespace, err := compileSelector(r.NamespaceSelector)
		if err != nil {
			return compiledWebhook{}, fmt.Errorf("reading namespaceSelector of webhook %s %s: %w", c.Name, r.Name, err)
		}
		object, err := compileSelector(r.ObjectSelector)
		if err != nil {
			return compiledWebhook{}, fmt.Errorf("reading objectSelector of webhook %s %s: %w", c.Name, r.Name, err)
		}
		h.rules = append(h.rules, hookRule{r.Name, namespace, object, len(r.MatchConditions) > 0})
	}
	return h, nil
}

// Decide decides for a pod, without a trace.
func (d *Decider) Decide(p Pod) Decision { return d.decideTraced(p, nil) }

// Explain decides for a pod as Decide does, and fills the trace.
func (d *Decider) Explain(p Pod) Decision {
	t := &stepTrace{}
	out := d.decideTraced(p, t)
	out.Trace = t.steps
	return out
}

// stepTrace collects steps; a nil trace discards them.
type stepTrace struct{ steps []Step }

func (t *stepTrace) add(s Step) {
	if t != nil {
		t.steps = append(t.steps, s)
	}
}

func (d *Decider) decideTraced(p Pod, t *stepTrace) Decision {
	v := selectorViewForPod(p)
	call := d.hooks.evaluateCall(v, t)
	verdict := d.injectRequired(p, v, t)

	out := Decision{Namespace: p.Namespace, Others: call.others}
	switch {
	case call.answer == No:
		u := uncalledWebhook{hooks: d.hooks, options: d.options, source: d.source, pod: p, view: v}
		u.explain(&out)
	case !verdict.inject:
		out.Code, out.Reason, out.Deciding = verdict.code, verdict.reason, verdict.fact
		out.Webhook = call.match
	case call.answer == Unknown:
		d.unknownNamespace(&out, p, verdict)
	default:
		out.Inject, out.Webhook = true, call.match
		out.Code, out.Deciding = CodeWebhook, call.fact
		out.Reason = "the webhook rule " + call.match.String() + " matches the pod (" + call.because + ")"
		if verdict.code != CodeWebhook && verdict.code != "" {
			out.Code = verdict.code
			out.Reason += ", and " + verdict.reason
			if call.fact == nil {
				out.Deciding = verdict.fact
			}
		}
	}
	if out.Webhook != nil {
		out.Revision = out.Webhook.Revision
	}
	d.addWarnings(&out, p)
	return out
}

// unknownNamespace decides for a pod when the webhook is called or not depending on unknown labels of the
// namespace.
func (d *Decider) unknownNamespace(out *Decision, p Pod, verdict injectorVerdict) {
	what := p.describeUnknownNamespace()
	out.Deciding = &Fact{Level: LevelNamespace, Kind: "label", Key: labelInjection, Missing: true,
		Source: p.Namespace.Source}
	own := "the pod does not opt out"
	if value, ok := p.Labels[labelInject]; ok && !slices.Contains(injectValues, value) {
		own = fmt.Sprintf("the pod's label %s=%s means nothing%s", labelInject, value, strict.DidYouMean(value, injectValues))
	}
	if verdict.fact != nil {
		own = verdict.reason
	}
	switch {
	case d.unknown == v1alpha1.UnknownNamespaceFail:
		out.Failed, out.Code = true, CodeNamespaceUnknownFail
		out.Reason = what + "; " + d.namespaceHint(p.Namespace)
	case d.unknown == v1alpha1.UnknownNamespaceSkip:
		out.Code = CodeNamespaceUnknownSkip
		out.Reason = what + ", and the policy skips such workloads"
	case d.options.UnknownNamespace == v1alpha1.UnknownNamespaceInject:
		out.Inject, out.Code = true, CodeNamespaceUnknownInject
		out.Reason = what + "; the policy injects such workloads, and " + own
	default:
		out.Inject, out.Code = true, CodeNamespaceNotAsked
		out.Reason = "the policy sets no namespaces, so all are injected, and " + own
		if verdict.fact == nil {
			out.Deciding = &Fact{Level: LevelPod, Kind: "label", Key: labelInject, Missing: true,
				Source: sourceWorkload}
		}
	}
	if out.Inject && verdict.fact != nil {
		out.Deciding = verdict.fact
	}
}

// otherRevision returns the revision that the pod's own label asks for, if the pod is injected without any webhook that
// asks for that label.
func (d *Decider) otherRevision(out *Decision, p Pod) string {
	asked := p.Labels[labelRevision]
	if !out.Inject || out.Webhook != nil || asked == "" || asked == revisionOrDefault(d.options.Revision) ||
		slices.Contains(d.options.RevisionTags, asked) {
		return ""
	}
	return asked
}

// The values of the labels istio-injection and sidecar.istio.io/inject that mean something.
var (
	injectionValues = []string{"enabled", "disabled"}
	injectValues    = []string{"true", "false"}
)

func (d *Decider) addWarnings(out *Decision, p Pod) {
	if len(out.Others) > 0 && out.Webhook != nil {
		names := []string{out.Webhook.String()}
		for _, o := range out.Others {
			names = append(names, o.String())
		}
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d webhook rules match the pod (%s); the cluster would inject it more than once", len(names), strings.Join(names, ", ")))
	}
	if out.Webhook != nil && out.Webhook.Conditional {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the webhook rule %s has matchConditions, which are not evaluated; it counts as if they held", out.Webhook))
	}
	if other := d.otherRevision(out, p); other != "" {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the pod's label istio.io/rev asks for the revision %s, and the policy injects the proxy of revision %s; "+
			"use a policy for revision %s, list it in revisionTags if it is a tag of this revision, or remove the label", other, revisionOrDefault(d.options.Revision), other))
	}
	if value := p.Namespace.Labels[labelInjection]; p.Namespace.Known && out.Webhook == nil && value != "" && !slices.Contains(injectionValues, value) {
		out.Warnings = append(out.Warnings, fmt.Sprintf("namespace %s has the label istio-injection=%s, and Istio reads only enabled and disabled%s",
			p.Namespace.Name, value, strict.DidYouMean(value, injectionValues)))
	}
	if p.Namespace.Known && p.Namespace.Labels[labelInjection] != "" && p.Namespace.Labels[labelRevision] != "" {
		out.Warnings = append(out.Warnings, fmt.Sprintf("namespace %s has both labels, istio-injection=%s and istio.io/rev=%s; the first one wins",
			p.Namespace.Name, p.Namespace.Labels[labelInjection], p.Namespace.Labels[labelRevision]))
	}
}
