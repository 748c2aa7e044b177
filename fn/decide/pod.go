// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

// podProfile is how injectRequired of a release reads a pod (source: injectRequired and IgnoredNamespaces in
// pkg/kube/inject/inject.go).
type podProfile struct {
	// label reports whether the label sidecar.istio.io/inject is read, and overrides the annotation of that name.
	label bool
	// exact reports that only true and false have a meaning and other values are ignored. In older versions y, yes,
	// true and on in any case mean yes and all other values mean no.
	exact bool
	// selectors reports whether neverInjectSelector and alwaysInjectSelector are known.
	selectors bool
	// ignored are the namespaces in which no pod is injected.
	ignored []string
}

func podProfileOf(r release.Release) podProfile {
	features := feature.Of(r)
	p := podProfile{
		label: features.Has(feature.InjectLabel), exact: features.Has(feature.InjectStrictValues),
		selectors: features.Has(feature.NeverAlwaysSelectors),
		ignored:   []string{"kube-system", "kube-public"},
	}
	if features.Has(feature.IgnoredNodeLease) {
		p.ignored = append(p.ignored, "kube-node-lease", "local-path-storage")
	}
	return p
}

// injectorVerdict is the injector's own decision.
type injectorVerdict struct {
	inject bool
	code   Code
	reason string
	fact   *Fact
}

// injectRequired is the injector's decision about a pod that it was asked about, question by question.
func (d *Decider) injectRequired(p Pod, v selectorView, t *stepTrace) injectorVerdict {
	step := func(what string, a Answer, because string) {
		t.add(Step{Stage: StageInjector, What: what, Answer: a, Because: because})
	}
	if p.HostNetwork {
		step("host network", No, "spec.hostNetwork is true")
		return injectorVerdict{false, CodeHostNetwork, "the pod is on the host's network",
			&Fact{Level: LevelPod, Kind: "field", Key: "spec.hostNetwork", Value: "true", Source: sourceWorkload}}
	}
	step("host network", Undecided, "the pod has its own network")
	if slices.Contains(d.profile.ignored, p.Namespace.Name) {
		step("ignored namespaces", No, p.Namespace.Name+" is ignored")
		return injectorVerdict{false, CodeIgnoredNamespace, "the injector ignores namespace " + p.Namespace.Name,
			&Fact{Level: LevelNamespace, Kind: "name", Key: p.Namespace.Name, Source: sourceWorkload}}
	}
	step("ignored namespaces", Undecided, nameOrUnknownNamespace(p.Namespace.Name)+" is not ignored")

	if own, answer := d.profile.podAsks(p); own != nil {
		step(labelInject, answer, own.String())
		switch answer {
		case Yes:
			if d.badPolicy() {
				return d.evaluateDefaultPolicy(step)
			}
			return injectorVerdict{true, CodePodAsks,
				fmt.Sprintf("the pod has the %s %s=%s", own.Kind, own.Key, own.Value), own}
		case No:
			return injectorVerdict{false, CodePodRefuses,
				fmt.Sprintf("the pod has the %s %s=%s", own.Kind, own.Key, own.Value), own}
		}
	} else {
		step(labelInject, Undecided, "the pod does not set it to true or false")
	}
	if out := d.evaluateInjectorSelectors(v, step); out != nil {
		if out.inject && d.badPolicy() {
			return d.evaluateDefaultPolicy(step)
		}
		return *out
	}
	return d.evaluateDefaultPolicy(step)
}

// podAsks reads the pod's own label or annotation; nil if it has neither.
func (profile podProfile) podAsks(p Pod) (*Fact, Answer) {
	f := &Fact{Level: LevelPod, Kind: "annotation", Key: labelInject, Source: sourceWorkload}
	value, ok := p.Annotations[labelInject]
	if l, there := p.Labels[labelInject]; there && profile.label {
		f.Kind, value, ok = "label", l, true
	}
	if !ok {
		return nil, Undecided
	}
	f.Value = value
	if profile.exact {
		switch value {
		case "true":
			return f, Yes
		case "false":
			return f, No
		}
		return f, Undecided
	}
	switch strings.ToLower(value) {
	case "y", "yes", "true", "on":
		return f, Yes
	case "":
		return f, Undecided
	}
	return f, No
}

// evaluateInjectorSelectors asks neverInjectSelector and alwaysInjectSelector.
func (d *Decider) evaluateInjectorSelectors(v selectorView, step func(string, Answer, string)) *injectorVerdict {
	if !d.profile.selectors {
		return nil
	}
	for _, s := range []struct {
		key    string
		ask    func(map[string]string) int
		inject bool
		code   Code
	}{
		{"neverInjectSelector", d.options.Never, false, CodeNeverSelector},
		{"alwaysInjectSelector", d.options.Always, true, CodeAlwaysSelector},
	} {
		i := -1
		if s.ask != nil {
			i = s.ask(v.labels.labels)
		}
		if i < 0 {
			step(s.key, Undecided, "no selector matches")
			continue
		}
		which := fmt.Sprintf("%s[%d]", s.key, i)
		answer := No
		if s.inject {
			answer = Yes
		}
		step(s.key, answer, which+" matches the pod's labels")
		return &injectorVerdict{s.inject, s.code, which + " of the injector's configuration matches the pod's labels",
			&Fact{Level: LevelInjector, Kind: "selector", Key: which, Source: sourceConfig}}
	}
	return nil
}

// badPolicy reports whether the injector does not know its policy; it then injects no pod at all.
func (d *Decider) badPolicy() bool {
	return d.options.Policy != "enabled" && d.options.Policy != "disabled"
}

func (d *Decider) evaluateDefaultPolicy(step func(string, Answer, string)) injectorVerdict {
	policy := d.options.Policy
	f := &Fact{Level: LevelInjector, Kind: "setting", Key: "policy", Value: policy, Source: sourceConfig}
	switch {
	case policy == "enabled":
		step("policy", Yes, "it is enabled")
		return injectorVerdict{true, CodeWebhook, "the injector's policy is enabled", nil}
	case policy == "disabled":
		step("policy", No, "it is disabled")
		return injectorVerdict{false, CodePolicyDisabled,
			"the injector's policy is disabled, and the pod does not ask for injection", f}
	}
	step("policy", No, fmt.Sprintf("%q is neither enabled nor disabled", policy))
	return injectorVerdict{false, CodePolicyDisabled,
		fmt.Sprintf("the injector's policy is %q, which is neither enabled nor disabled, so that it injects nothing",
			policy), f}
}

func nameOrUnknownNamespace(name string) string {
	if name == "" {
		return "the unknown namespace"
	}
	return name
}
