// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/builtin"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/policies"
)

// compiledPolicy is a policy that is ready to be applied.
type compiledPolicy struct {
	policy *v1alpha1.InjectionPolicy
	// versionFrom is the source of the policy's version of Istio, where it is not the policy.
	versionFrom string
	// istio is nil where the policy does not inject Istio's proxy.
	istio *istio.Injector
	// decider decides which pods Istio's webhook would inject.
	decider *decide.Decider
	// limitRanges are those that the policy lists, by namespace.
	limitRanges map[string][]namedLimits
	// lock has the digests of images.
	lock *pin.Lock
	// lints reports whether findings are wanted, at these severities.
	lints      bool
	severities lint.Severities
	// sidecars are those that are not Istio's.
	sidecars []*sidecar.Sidecar
}

// compilePolicies prepares the policies with what the items reveal. An error among the results means that no policy
// is applied.
func (in *Injector) compilePolicies(s *cluster) ([]*compiledPolicy, result.Results) {
	var plans []*compiledPolicy
	var results result.Results
	for i, p := range in.policies {
		pl := &compiledPolicy{policy: p, versionFrom: in.versionFrom, limitRanges: listedLimits(&p.Spec)}
		plans = append(plans, pl)
		if p.Spec.From != "" && in.mode != v1alpha1.ModeRemove {
			results = append(results, policyError(p, strict.AtField(errors.New("the policy is completed from a cluster, which only prerig serve reads, for "+
				"policies that are objects of the cluster or files of the daemon; write a complete policy with prerig import --kubeconfig FILE"), "spec", "from")))
			continue
		}
		if err := pl.preparePins(s); err != nil {
			results = append(results, policyError(p, strict.Below(err, "spec")))
			continue
		}
		if in.mode == v1alpha1.ModeRemove {
			continue
		}
		if !p.Spec.Admission.WritesInjection() {
			results = append(results, policyResult(p, result.Info, "spec.admission.steps.webhook", "the injection is not written into the workloads"))
			continue
		}
		results = append(results, pl.prepareSidecars()...)
		if p.Spec.Istio == nil {
			continue
		}
		warnings, err := pl.prepareIstio(s, &in.compiled[i])
		if err != nil {
			results = append(results, policyError(p, strict.Below(ownField(p.Spec.Istio, err), "spec", "istio")))
			continue
		}
		for _, w := range slices.Concat(pl.istio.MeshWarnings, pl.istio.ValueWarnings) {
			path, _ := strict.FieldOf(strict.Below(ownField(p.Spec.Istio, w), "spec", "istio"))
			results = append(results, policyWarning(p, w.Error(), path...))
		}
		if problem := pl.istio.MeshProblem; problem != nil {
			if p.Spec.Istio.MeshConfig != "" && p.Metadata.Annotations[v1alpha1.CompletedAnnotation] == "" {
				results = append(results, policyError(p, strict.Below(problem, "spec", "istio")))
				continue
			}
			warnings = append(warnings, problem.Error())
		}
		for _, w := range warnings {
			results = append(results, policyResult(p, result.Warning, "spec.istio", w))
		}
		d := pl.istio.Detection()
		for _, message := range append([]string{describeDetection(d)}, d.Notes...) {
			results = append(results, policyResult(p, result.Info, "spec.istio.version", message))
		}
	}
	return plans, results
}

// policyError is an error about a policy. It names the flag that has set the field of the error, or the line of it.
func policyError(p *v1alpha1.InjectionPolicy, err error) result.Result {
	path, line := strict.FieldOf(err)
	if flag, ok := p.Source.FlagOf(path); ok {
		return result.Result{Severity: result.Error, Message: fmt.Sprintf("%s is %q: %s", flag.Flag, flag.Value, err)}
	}
	out := policyResult(p, result.Error, strict.FieldPath(path...), err.Error())
	out.File = p.Source.Place(path, line)
	return out
}

// policyWarning is a warning about a field of a policy.
func policyWarning(p *v1alpha1.InjectionPolicy, message string, at ...any) result.Result {
	out := policyResult(p, result.Warning, strict.FieldPath(at...), message)
	out.File = p.Source.Place(at, 0)
	return out
}

// ownField is an error of an injector whose path leads to a field of the policy. What is not the policy's own is among
// the items, in a ConfigMap that the message names.
func ownField(spec *v1alpha1.Istio, err error) error {
	path, _ := strict.FieldOf(err)
	own := len(path) > 0
	if own && path[0] == "meshConfig" {
		own = spec.MeshConfig != ""
	}
	if len(path) > 1 && path[0] == "injector" && (path[1] == "config" || path[1] == "values") {
		own = spec.Injector.Config != ""
	}
	if own {
		return err
	}
	return strict.AtField(err)
}

// policyResult is a result about a policy.
func policyResult(p *v1alpha1.InjectionPolicy, severity result.Severity, field, message string) result.Result {
	return result.Result{
		Message:     message,
		Severity:    severity,
		ResourceRef: &result.ResourceRef{APIVersion: p.APIVersion, Kind: p.Kind, Name: p.Metadata.Name, Namespace: p.Metadata.Namespace},
		Field:       &result.Field{Path: field},
	}
}

// prepareIstio reads the injector's configuration from the source that the policy specifies.
func (pl *compiledPolicy) prepareIstio(s *cluster, compiled *compiledIstio) (warnings []string, err error) {
	spec := pl.policy.Spec.Istio
	o := istio.Options{
		Version: spec.Version, VersionFrom: pl.versionFrom, Overrides: spec.Injector.Overrides, Revision: spec.Revision, Native: istio.Native(spec.NativeSidecars),
		KubernetesVersion: spec.KubernetesVersion, Admission: istio.Admission(spec.Admission), IstiodEnv: spec.IstiodEnv, Cluster: spec.Cluster, Network: spec.Network, ProxyEnv: spec.ProxyEnv,
		RootNamespace: spec.RootNamespace, ProxyConfigs: pl.proxyConfigs(s),
	}
	o.NamespaceLabels = pl.labelsOf(o.ProxyConfigs, s)
	if o.Config, o.Values, err = injectorConfig(spec, s, &o, compiled); err != nil {
		return nil, err
	}
	if spec.MeshConfig != "" {
		o.Mesh = spec.MeshConfig
	} else if o.Mesh == "" {
		cm, err := s.configMap(withRevision(meshConfigMap, spec.Revision), injectorNamespace(spec))
		if err != nil {
			return nil, err
		}
		if cm != nil {
			o.Mesh = cm.configMapValue("mesh")
		}
	}
	if pl.istio, err = compiled.injectorForOptions(o, len(s.proxyConfigs) == 0); err != nil {
		return nil, err
	}
	return pl.istio.Warnings(), pl.prepareDecision(s)
}

// prepareDecision reads the selectors of the webhooks: the policy's own, or those among the items, or the
// version's.
func (pl *compiledPolicy) prepareDecision(s *cluster) error {
	o := decide.OptionsFor(pl.istio, &pl.policy.Spec)
	if len(o.Webhooks) == 0 {
		webhooks, err := injectorWebhooks(s.webhooks)
		if err != nil {
			return err
		}
		if len(webhooks) > 0 {
			o.Webhooks, o.WebhookSource = webhooks, "the items"
		}
	}
	var err error
	pl.decider, err = decide.New(o)
	return err
}

// preparePins reads what is not Istio's.
func (pl *compiledPolicy) preparePins(s *cluster) error {
	if l := pl.policy.Spec.Lint; l != nil && !l.Disabled {
		pl.lints = true
		var err error
		if pl.severities, err = lint.NewPolicySeverities(l); err != nil {
			return strict.Below(err, "lint")
		}
	}
	images := pl.policy.Spec.Images
	if images == nil || pl.policy.Spec.Mode == v1alpha1.ModeRemove { // no images are pinned then
		return nil
	}
	locks, err := s.imageLocks(images.Lock)
	if err != nil {
		return strict.AtField(err, "images", "lock")
	}
	pl.lock, err = pin.NewLock(images.Pins, locks...)
	return err
}

// injectorConfig returns data.config and data.values. A built-in policy also brings its own mesh config, version and settings
// where the policy has none.
func injectorConfig(spec *v1alpha1.Istio, s *cluster, o *istio.Options, compiled *compiledIstio) (config, values string, err error) {
	inj := spec.Injector
	switch {
	case inj.Config != "":
		return inj.Config, inj.Values, nil
	case inj.BuiltIn != "":
		return builtIn(inj.BuiltIn, o, compiled)
	}
	name := withRevision(injectorConfigMap, spec.Revision)
	if ref := spec.Injector.ConfigMap; ref != nil {
		name = ref.Name
	}
	cm, err := s.configMap(name, injectorNamespace(spec))
	if err != nil {
		return "", "", err
	}
	if cm == nil {
		return "", "", errors.New("there is no injector configuration: the policy has neither injector.config nor injector.builtIn, and " +
			"the ConfigMap " + name + " is not among the items; write a policy that has it with prerig import, or use injector.builtIn: istio")
	}
	if cm.configMapValue("config") == "" {
		return "", "", fmt.Errorf("reading %s: data.config is missing or empty", cm.unit.resourceReference())
	}
	return cm.configMapValue("config"), cm.configMapValue("values"), nil
}

// builtIn returns the configuration of a built-in policy for the version that the options or the overrides say.
func builtIn(name string, o *istio.Options, compiled *compiledIstio) (config, values string, err error) {
	if name != builtin.Name {
		if _, there := policies.Get(name); there {
			return "", "", strict.AtField(fmt.Errorf("reading the built-in policy %s: it does not inject Istio", name), "injector", "builtIn")
		}
		return "", "", strict.AtField(fmt.Errorf("finding the built-in policy %q%s: there are %s", name, strict.DidYouMean(name, policies.Names()), strings.Join(policies.Names(), ", ")), "injector", "builtIn")
	}
	choice, err := builtin.Choose(o.Version, o.Overrides)
	if err != nil {
		return "", "", err
	}
	p, err := compiled.builtInPolicy(choice.Version)
	if err != nil {
		return "", "", err
	}
	b := p.Spec.Istio
	if choice.From != "" {
		o.VersionFrom = choice.From
	}
	o.Version, o.Known = b.Version, true
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = b.KubernetesVersion
	}
	if o.Mesh == "" {
		o.Mesh = b.MeshConfig
	}
	o.Doubts = choice.Warnings
	return b.Injector.Config, b.Injector.Values, nil
}

// readBuiltIn reads a policy that ships with Prerig. It does not need line numbers for problems, and reading
// without them takes a tenth of the time.
func readBuiltIn(text []byte) (*v1alpha1.InjectionPolicy, error) {
	v, err := manifest.Decode(text)
	if err != nil {
		return nil, err
	}
	obj, _ := v.(map[string]any)
	return v1alpha1.FromObject(obj)
}

// injectorNamespace is where the control plane's ConfigMaps are looked for; empty means everywhere.
func injectorNamespace(spec *v1alpha1.Istio) string {
	if ref := spec.Injector.ConfigMap; ref != nil {
		return ref.Namespace
	}
	return ""
}

// withRevision returns the name of a control plane's object of a revision.
func withRevision(name, revision string) string {
	if revision == "" || revision == "default" {
		return name
	}
	return name + "-" + revision
}

// injectorWebhooks reduces the cluster's webhook configurations among the items to those of Istio's injector.
func injectorWebhooks(objs []map[string]any) ([]v1alpha1.Webhook, error) {
	var out []v1alpha1.Webhook
	for _, obj := range objs {
		w, err := v1alpha1.WebhookFromObject(obj)
		if err != nil {
			return nil, err
		}
		if len(w.Webhooks) > 0 && (strings.HasPrefix(w.Name, injectorConfigMap) || strings.HasPrefix(w.Name, "istio-revision-tag-")) {
			out = append(out, w)
		}
	}
	return out, nil
}

func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k], _ = v.(string)
	}
	return out
}

// describeDetection describes which version is followed, and why.
func describeDetection(d istio.Detection) string {
	return fmt.Sprintf("following Istio %s, by %s", d.Version, d.From)
}
