// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// validate checks what the types alone do not express.
func (ps *problems) validate(p *InjectionPolicy) {
	if p.Metadata.Name == "" {
		ps.Add([]any{"metadata", "name"}, "is empty")
	}
	s, at := p.Spec, []any{"spec"}
	if s.Mode != ModeRemove && s.Istio == nil && len(s.Sidecars) == 0 && s.Lint == nil && s.Images == nil && !s.Admission.WritesPolicies() {
		ps.Add(at, "names nothing to inject; add istio or sidecars")
	}
	if s.From == FromCluster && s.Istio != nil && s.Istio.Injector.ConfigMap != nil {
		ps.Add([]any{"spec", "istio", "injector", "configMap"}, "names a ConfigMap among the items, and from: Cluster reads that of the cluster; keep one of them")
	}
	if s.Istio != nil {
		ps.validateIstio(child(at, "istio"), s.Istio)
	}
	if s.Admission != nil {
		ps.validateAdmission(child(at, "admission"), s.Admission)
	}
	ps.validateNamespaces(at, s)
	for i, w := range s.Workloads {
		ps.validateWorkload(child(child(at, "workloads"), i), w)
	}
	ps.validateSidecars(child(at, "sidecars"), s.Sidecars)
	if s.Images != nil {
		for _, from := range slices.Sorted(maps.Keys(s.Images.Pins)) {
			ps.validatePin(child(at, "images"), from, s.Images.Pins[from])
		}
		for i, v := range s.Images.Verify {
			ps.validateVerification(child(child(child(at, "images"), "verify"), i), v)
		}
	}
}

var (
	istioVersion      = lazyregexp.New(`^v?1\.(\d{1,3})(\.\d+)?([-+][0-9A-Za-z.+-]+)?$`)
	kubernetesVersion = lazyregexp.New(`^v?1\.(\d{1,3})(\.\d+)?([-+][0-9A-Za-z.+-]+)?$`)
	urlName           = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._:/@-]*[A-Za-z0-9])?$`)
	imageDigest       = lazyregexp.New(`^[^\s@]+@sha(256:[a-f0-9]{64}|512:[a-f0-9]{128})$`)
)

// IsIstioVersion reports whether a text is what istio.version can be, such as 1.31 and 1.31.0.
func IsIstioVersion(text string) bool { return istioVersion.MatchString(text) }

// IsKubernetesVersion reports whether a text is what kubernetesVersion can be, such as 1.34, v1.34.2 and 1.34.2-gke.100.
func IsKubernetesVersion(text string) bool { return kubernetesVersion.MatchString(text) }

func (ps *problems) validateAdmission(at []any, a *PodAdmission) {
	for _, step := range slices.Sorted(maps.Keys(a.Steps)) {
		here := child(child(at, "steps"), step)
		switch {
		case !slices.Contains(AdmissionSteps, step):
			ps.Add(here, "is not a step of admission%s: there are %s", strict.DidYouMean(step, AdmissionSteps), strings.Join(AdmissionSteps, ", "))
		case a.Steps[step] == StepWrite && step != StepWebhook && step != StepMutatingPolicies:
			ps.Add(here, "cannot be written, because the API server takes this step again with each pod; use Predict or Ignore")
		}
	}
	switch {
	case a.WritesPolicies() && strings.TrimSpace(a.Policies) == "":
		ps.Add(child(at, "policies"), "is empty, and steps writes MutatingAdmissionPolicies; add them with their bindings, as prerig capture writes them")
	case !a.WritesPolicies() && a.Policies != "":
		ps.Add(child(at, "policies"), "has no effect without steps.%s: Write; prerig admit --cluster predicts the policies of a cluster", StepMutatingPolicies)
	}
}

func (ps *problems) validateIstio(at []any, i *Istio) {
	if i.Version != "" && !IsIstioVersion(i.Version) {
		ps.Add(child(at, "version"), `%q is not a version of Istio, such as "1.31" or "1.31.0"`, i.Version)
	}
	if i.KubernetesVersion != "" && !IsKubernetesVersion(i.KubernetesVersion) {
		ps.Add(child(at, "kubernetesVersion"), `%q is not a version of Kubernetes, such as "1.34"`, i.KubernetesVersion)
	}
	ps.validateInjector(child(at, "injector"), i.Injector)
	ps.dnsLabel(child(at, "revision"), i.Revision)
	for n, tag := range i.RevisionTags {
		if tag == "" {
			ps.Add(append(child(at, "revisionTags"), n), "is empty")
		}
		ps.dnsLabel(append(child(at, "revisionTags"), n), tag)
	}
	ps.dnsLabel(child(at, "rootNamespace"), i.RootNamespace)
	for _, f := range []struct{ key, value string }{{"network", i.Network}, {"cluster", i.Cluster}} {
		if f.value != "" && !urlName.MatchString(f.value) {
			ps.Add(child(at, f.key), "%q is not the name of a %s: letters, digits, and dots, dashes, underscores, slashes and colons between them", f.value, f.key)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.ProxyEnv)) {
		if len(validation.IsEnvVarName(name)) > 0 {
			ps.Add(child(child(at, "proxyEnv"), name), "is not the name of a variable: letters, digits, underscores, dots and dashes, and no digit at the beginning")
		}
	}
	for n, w := range i.Webhooks {
		ps.validateWebhook(append(child(at, "webhooks"), n), w)
	}
}

func (ps *problems) validateInjector(at []any, i Injector) {
	var given []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"config", i.Config != ""}, {"configMap", i.ConfigMap != nil}, {"builtIn", i.BuiltIn != ""}} {
		if f.set {
			given = append(given, f.name)
		}
	}
	if len(given) > 1 {
		ps.Add(child(at, given[1]), "excludes %s; keep one of %s", given[0], strings.Join(given, ", "))
	}
	if i.Values != "" && i.Config == "" {
		ps.Add(child(at, "values"), "needs config beside it: the two are data.config and data.values of one ConfigMap")
	}
	if i.ConfigMap != nil && i.ConfigMap.Name == "" {
		ps.Add(append(child(at, "configMap"), "name"), "is empty")
	}
}

// checkVerbatim rejects a text that is present but empty: it would silently mean another source of the
// configuration.
func (ps *problems) checkVerbatim(obj map[string]any) {
	at := []any{"spec", "istio", "injector"}
	var v any = obj
	for _, k := range at {
		m, _ := v.(map[string]any)
		v = m[k.(string)]
	}
	injector, _ := v.(map[string]any)
	for _, k := range []string{"config", "builtIn"} {
		if text, ok := injector[k].(string); ok && strings.TrimSpace(text) == "" {
			ps.Add(child(at, k), "is empty")
		}
	}
}

func (ps *problems) validateWebhook(at []any, w Webhook) {
	if w.Name == "" {
		ps.Add(child(at, "name"), "is empty")
	}
	if len(w.Webhooks) == 0 {
		ps.Add(child(at, "webhooks"), "has no entry, so that the configuration calls nothing; remove it")
	}
	for i, r := range w.Webhooks {
		e := append(child(at, "webhooks"), i)
		ps.validateSelector(child(e, "namespaceSelector"), r.NamespaceSelector)
		ps.validateSelector(child(e, "objectSelector"), r.ObjectSelector)
	}
}

// validateSelector checks a label selector as the API server does.
func (ps *problems) validateSelector(at []any, s *LabelSelector) {
	if s == nil {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if _, err := labels.NewRequirement(k, selection.Equals, []string{s.MatchLabels[k]}); err != nil {
			ps.Add(append(child(at, "matchLabels"), k), "%v", err)
		}
	}
	for i, r := range s.MatchExpressions {
		e := append(child(at, "matchExpressions"), i)
		if _, err := r.Requirement(); err != nil {
			ps.Add(e, "%v", err)
		}
	}
}

// Requirement returns the requirement as Kubernetes' own type, which evaluates it.
func (r LabelSelectorRequirement) Requirement() (*labels.Requirement, error) {
	op := map[string]selection.Operator{"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist}[r.Operator]
	return labels.NewRequirement(r.Key, op, r.Values)
}

// Selector returns the selector as Kubernetes' own type. No selector at all matches everything, as in a webhook.
func (s *LabelSelector) Selector() (labels.Selector, error) {
	out := labels.NewSelector()
	if s == nil {
		return out, nil
	}
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		r, err := labels.NewRequirement(k, selection.Equals, []string{s.MatchLabels[k]})
		if err != nil {
			return nil, err
		}
		out = out.Add(*r)
	}
	for _, e := range s.MatchExpressions {
		r, err := e.Requirement()
		if err != nil {
			return nil, err
		}
		out = out.Add(*r)
	}
	return out, nil
}

func (ps *problems) validateNamespaces(at []any, s InjectionPolicySpec) {
	ps.dnsLabel(child(at, "defaultNamespace"), s.DefaultNamespace)
	ps.dnsLabel(child(at, "targetNamespace"), s.TargetNamespace)
	seen := map[string]int{}
	for i, n := range s.Namespaces {
		e := append(child(at, "namespaces"), i, "name")
		if n.Name == "" {
			ps.Add(e, "is empty")
			continue
		}
		if first, ok := seen[n.Name]; ok {
			ps.Add(e, "%q is already given as namespaces[%d]", n.Name, first)
			continue
		}
		seen[n.Name] = i
		ps.dnsLabel(e, n.Name)
		ps.validateNamespace(append(child(at, "namespaces"), i), n)
	}
}

// validateNamespace checks what a namespace has as the API server does.
func (ps *problems) validateNamespace(at []any, n Namespace) {
	check := func(key string, names []string) {
		seen := map[string]bool{}
		for i, name := range names {
			e := append(child(at, key), i, "name")
			switch {
			case name == "":
				ps.Add(e, "is empty")
			case seen[name]:
				ps.Add(e, "%q is given twice", name)
			case len(validation.IsDNS1123Subdomain(name)) > 0:
				ps.Add(e, "%q is not a name: lower case letters, digits, - and .", name)
			}
			seen[name] = true
		}
	}
	var accounts, limits, configs []string
	for i, one := range n.ServiceAccounts {
		accounts = append(accounts, one.Name)
		for j, secret := range one.ImagePullSecrets {
			if secret != "" && len(validation.IsDNS1123Subdomain(secret)) > 0 {
				ps.Add(append(child(at, "serviceAccounts"), i, "imagePullSecrets", j), "%q is not the name of a Secret: lower case letters, digits, - and .", secret)
			}
		}
	}
	for i, one := range n.LimitRanges {
		limits = append(limits, one.Name)
		for j, limit := range one.Limits {
			ps.validateLimit(append(child(at, "limitRanges"), i, "limits", j), limit)
		}
	}
	for _, one := range n.ProxyConfigs {
		configs = append(configs, one.Name)
	}
	check("serviceAccounts", accounts)
	check("limitRanges", limits)
	check("proxyConfigs", configs)
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if msgs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(n.Labels[key])...); len(msgs) > 0 {
			ps.Add(child(child(at, "labels"), key), "%q is not a label that a namespace can have: %s", key+"="+n.Labels[key], msgs[0])
		}
	}
}

// The parts of a limit of a LimitRange.
var (
	limitTypes  = []string{"Container", "Pod", "PersistentVolumeClaim"}
	limitFields = []string{"type", "default", "defaultRequest", "max", "min", "maxLimitRequestRatio"}
)

// validateLimit checks one limit of a LimitRange.
func (ps *problems) validateLimit(at []any, v any) {
	limit, isMap := v.(map[string]any)
	if !isMap {
		ps.Add(at, "must be a map with type and default, defaultRequest, max or min, is %s", strict.Describe(v))
		return
	}
	kind, _ := limit["type"].(string)
	if !slices.Contains(limitTypes, kind) && !strings.Contains(kind, "/") {
		ps.Add(child(at, "type"), "must be %s, is %q%s", strings.Join(limitTypes, ", "), kind, strict.DidYouMean(kind, limitTypes))
	}
	for _, field := range slices.Sorted(maps.Keys(limit)) {
		amounts, isMap := limit[field].(map[string]any)
		switch {
		case !slices.Contains(limitFields, field):
			ps.Add(child(at, field), "unknown field%s; known fields are %s", strict.DidYouMean(field, limitFields), strings.Join(limitFields, ", "))
		case field != "type" && limit[field] != nil && !isMap:
			ps.Add(child(at, field), "must be a map of resources and quantities, such as {cpu: 100m}, is %s", strict.Describe(limit[field]))
		}
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if _, err := quantity.Parse(fmt.Sprint(amounts[name])); err != nil {
				ps.Add(child(child(at, field), name), "must be a quantity such as 100m or 128Mi, is %s", strict.Describe(amounts[name]))
			}
		}
	}
}

func (ps *problems) validateWorkload(at []any, w WorkloadKind) {
	if w.Kind == "" {
		ps.Add(child(at, "kind"), "is empty")
	}
	if _, _, err := w.GroupVersion(); err != nil {
		ps.Add(child(at, "apiVersion"), "%v", err)
	}
	if _, err := ParsePodTemplatePath(w.PodTemplate); err != nil {
		ps.Add(child(at, "podTemplate"), "%v", err)
	}
}

func (ps *problems) validatePin(at []any, from, to string) {
	key := append(child(at, "pins"), from)
	if from == "" || strings.ContainsAny(from, " \t\n") {
		ps.Add(key, "is not an image")
	}
	if !imageDigest.MatchString(to) {
		ps.Add(key, "%q does not end in a digest, such as @sha256:… with 64 hexadecimal digits", to)
	}
}

// validateVerification checks what can be determined about a key without reading it: reading is left to the
// verifier.
func (ps *problems) validateVerification(at []any, v ImageVerification) {
	if v.Images == "" || strings.ContainsAny(v.Images, " \t\n@") {
		ps.Add(child(at, "images"), "%q is not a pattern of repositories, such as ghcr.io/acme/*", v.Images)
	}
	if len(v.Keys) == 0 {
		ps.Add(child(at, "keys"), "is empty; list at least one public key")
	}
	for i, key := range v.Keys {
		if !strings.Contains(key, "-----BEGIN PUBLIC KEY-----") {
			ps.Add(child(child(at, "keys"), i), "is not a public key in PEM, as in cosign.pub")
		}
	}
}

func (ps *problems) dnsLabel(at []any, s string) {
	if s == "" {
		return
	}
	if msgs := validation.IsDNS1123Label(s); len(msgs) > 0 {
		ps.Add(at, "%q is not a name: lower case letters, digits and -, at most 63 of them", s)
	}
}
