// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/strict"
)

// Native reports whether the proxy is an init container that always restarts.
type Native string

// The settings of native sidecars.
const (
	// NativeAuto, or "", is what the control plane of the version would decide.
	NativeAuto     Native = "Auto"
	NativeEnabled  Native = "Enabled"
	NativeDisabled Native = "Disabled"
)

// Admission is how the templates see a pod.
type Admission string

// The ways to see a pod.
const (
	// AdmissionDefaulted is how the webhook sees it: with the defaults of the cluster's API server.
	AdmissionDefaulted Admission = "Defaulted"
	// AdmissionRaw is how it is written, as istioctl kube-inject sees it.
	AdmissionRaw Admission = "Raw"
)

// Options are everything that an injector is made of.
type Options struct {
	// Version of Istio, such as 1.31; empty to find it in the configuration.
	Version string
	// VersionFrom is the source of Version, as text; empty means the policy. Doubts are warnings about it.
	VersionFrom string
	Doubts      []string
	// Config is data.config and Values data.values of the ConfigMap istio-sidecar-injector, Mesh is data.mesh of the ConfigMap
	// istio, verbatim. Values and Mesh may be empty.
	Config, Values, Mesh string
	// Known reports whether the configuration is known to be valid and made for the version, as that of a built-in policy is. Templates that
	// pods only get on request are then not parsed before a pod requests one.
	Known bool
	// Overrides are merged over the values.
	Overrides map[string]any
	// Revision of the control plane; empty for the default.
	Revision string
	// Native sidecars; KubernetesVersion is the version of the oldest kubelet, such as 1.34, which NativeAuto needs, and is
	// taken for that of the API server too. Empty means the newest one that is known.
	Native            Native
	KubernetesVersion string
	// Admission is how the templates see a pod; "" is AdmissionDefaulted.
	Admission Admission
	// IstiodEnv is the environment of the control plane: what templates read with env, and COMPLIANCE_POLICY,
	// ENABLE_NATIVE_SIDECARS and ENABLE_LEGACY_FSGROUP_INJECTION.
	IstiodEnv map[string]string
	// Cluster and Network are as in the injection URL (/inject/cluster/NAME/net/NAME).
	Cluster, Network string
	// ProxyEnv holds the other variables that the injection URL sets on every proxy (/inject/KEY/VALUE), by name.
	ProxyEnv map[string]string
	// RootNamespace is the namespace of mesh-wide resources; if empty, the mesh config's is used.
	RootNamespace string
	// ProxyConfigs are the cluster's ProxyConfig resources, the oldest first.
	ProxyConfigs []map[string]any
	// NamespaceLabels are the labels of the namespaces that ProxyConfigs are in, as far as they are known.
	NamespaceLabels map[string]map[string]string
}

// Injector is an injector configuration, ready to use. It is immutable and safe for concurrent use.
type Injector struct {
	opts      Options
	detection Detection
	config    *Config
	values    Values
	language  *language
	templates map[string]*Template
	env       environment
	native    bool
	apiServer *admission.Server
	warnings  []string
	// MeshWarnings lists what is wrong or ignored in the mesh config, and ValueWarnings what is wrong with the values, with the path
	// of each. They must not be changed. MeshProblem is why istiod rejects the whole mesh config, or nil.
	MeshWarnings  []error
	MeshProblem   error
	ValueWarnings []error
	outputs       sync.Pool
	known         knownYAML
	reads         func() (*Reads, error)

	podSelectors
	proxyConfigs
}

// podSelectors are the selectors of the configuration, which go before the policy of a namespace.
type podSelectors struct {
	never, always []labels.Selector
}

// proxyConfigs are the mesh config and the ProxyConfig resources.
type proxyConfigs struct {
	profile   *Profile
	mesh      *mesh.MeshConfig
	resources *mesh.Resources
	// plainProxyConfig is the proxy config of pods without annotation if no resources exist either, or nil;
	// plainProxyJSON is its JSON.
	plainProxyConfig *mesh.ProxyConfig
	plainProxyJSON   func() (string, error)
}

// New reads and checks a configuration and parses its templates. What is uncertain about it is in Warnings.
func New(o Options) (*Injector, error) {
	in := &Injector{opts: o, env: environment(maps.Clone(o.IstiodEnv))}
	in.reads = sync.OnceValues(in.readTemplates)
	in.outputs.New = func() any { return gotemplate.NewOutput(maxRendered, nil) }
	var err error
	if in.config, err = ParseConfig(o.Config); err != nil {
		return nil, atSyntaxError(o.Config, "reading the injector configuration (data.config)", err, "injector", "config")
	}
	if in.values, err = ParseValues(o.Values, o.Overrides); err != nil {
		return nil, atSyntaxError(o.Values, "reading the injector's values (data.values)", err, "injector", "values")
	}
	if err = in.config.applyChartOverrides(o.Overrides); err != nil {
		return nil, err
	}
	hasValues := strings.TrimSpace(o.Values) != "" || len(o.Overrides) > 0
	if in.detection, err = detectVersion(o, in.config, in.values, hasValues); err != nil {
		return nil, err
	}
	in.detection.assumePatch(in.config, o.Known)
	in.warnings = slices.Concat(o.Doubts, in.detection.Warnings)
	in.profile, _ = ProfileOf(in.detection.Version)
	if in.profile.Has(feature.TemplatesMerged) && !hasValues {
		return nil, strict.AtField(errors.New("reading the injector's values: there are none; write data.values of the ConfigMap istio-sidecar-injector "+
			"as spec.istio.injector.values, beside config"), "injector", "config")
	}
	if err := in.readMesh(); err != nil {
		return nil, err
	}
	native, warnings, err := decideNative(o, in.profile, in.env)
	if err != nil {
		return nil, err
	}
	in.native = native
	in.warnings = append(in.warnings, warnings...)
	if in.profile.Has(feature.NativeSidecars) && (o.Native == NativeEnabled || o.Native == NativeDisabled) {
		in.env = in.env.with(envNativeSidecars, strconv.FormatBool(native)) // the templates up to 1.26 read it
	}
	if in.apiServer, err = chooseAPIServer(o); err != nil {
		return nil, err
	}
	if err := in.parseTemplates(); err != nil {
		return nil, err
	}
	if in.ValueWarnings, err = checkValues(o, in.templates); err != nil {
		return nil, err
	}
	in.ValueWarnings = append(in.ValueWarnings, wrongVariables(o)...)
	if in.profile.Has(feature.NeverAlwaysSelectors) {
		var never, always []string
		in.never, never = parseSelectors("neverInjectSelector", in.config.NeverInjectSelector)
		in.always, always = parseSelectors("alwaysInjectSelector", in.config.AlwaysInjectSelector)
		in.warnings = slices.Concat(in.warnings, never, always)
	}
	in.warnings = append(in.warnings, ignoredURLSettings(o, in.profile)...)
	return in, nil
}

// checkValues checks the overrides, and returns warnings about the values. Those of a built-in policy are known.
func checkValues(o Options, templates map[string]*Template) (warnings []error, err error) {
	if o.Known && len(o.Overrides) == 0 {
		return nil, nil
	}
	base, err := ParseValues(o.Values, nil)
	if err != nil {
		return nil, err
	}
	if len(o.Overrides) > 0 {
		if err := checkOverrides(o.Overrides, base, templates); err != nil {
			return nil, err
		}
	}
	if !o.Known {
		warnings = checkBaseValues(base, o.Overrides)
	}
	return warnings, nil
}

// readMesh reads the mesh config and the ProxyConfig resources, and computes once what is the same for every pod without
// settings of its own.
func (in *Injector) readMesh() error {
	mc, warnings, err := mesh.Parse(in.opts.Mesh, in.profile.release)
	if err != nil {
		return atSyntaxError(in.opts.Mesh, "reading the mesh config (data.mesh of the ConfigMap istio)", err, "meshConfig")
	}
	for _, w := range warnings {
		in.MeshWarnings = append(in.MeshWarnings, strict.AtField(errors.New(w), append([]any{"meshConfig"}, mesh.FieldOf(w)...)...))
	}
	if in.profile.Has(feature.ValidateProxyConfig) && !feature.HasPlaceholder(in.opts.Mesh) {
		if err := mesh.ValidateProxyConfig(mc.DefaultConfig, in.profile.release); err != nil {
			w := "field defaultConfig." + err.Error() + ": istiod rejects the mesh config and keeps the one that it had"
			in.MeshProblem = strict.AtField(errors.New(w), append([]any{"meshConfig"}, mesh.FieldOf(w)...)...)
		}
	}
	if in.opts.RootNamespace != "" {
		mc.RootNamespace = in.opts.RootNamespace
	}
	in.mesh = mc
	if in.profile.Has(feature.ProxyConfigResources) {
		reader := resourceReader{profile: in.profile, mesh: mc, env: in.env, namespaces: in.opts.NamespaceLabels}
		if in.resources, err = reader.readAll(in.opts.ProxyConfigs, in.Revision()); err != nil {
			return err
		}
		in.warnings = append(in.warnings, reader.warnings...)
	}
	in.known.registerNestedMaps(map[string]any(in.values))
	if !in.profile.Has(feature.ProxyConfigAnnotation) || len(in.opts.ProxyConfigs) > 0 {
		return nil
	}
	pc, _, err := mc.Effective(in.resources, "", nil, nil)
	if err != nil {
		return err
	}
	in.plainProxyConfig = pc
	in.plainProxyJSON = sync.OnceValues(func() (string, error) { return mesh.ProtoToJSON(pc, in.profile.Release()) })
	return nil
}

// boundFunctions are the functions that need the injector.
func (in *Injector) boundFunctions() template.FuncMap {
	return template.FuncMap{
		"env":         in.env.value,
		"protoToJSON": in.protoToJSON,
		"toYaml":      gotemplate.CheckArguments(in.known.toYAML, rejectWholeData),
		"render":      func(string) (string, error) { return "", fmt.Errorf("render is not bound") },
	}
}

// Profile is how the version's injector behaves.
func (in *Injector) Profile() *Profile { return in.profile }

// Detection returns the chosen version and the reason for it.
func (in *Injector) Detection() Detection { return in.detection }

// Warnings lists what is uncertain about the configuration or ignored in it.
func (in *Injector) Warnings() []string { return slices.Clone(in.warnings) }

// Config is the injector configuration. It must not be changed.
func (in *Injector) Config() *Config { return in.config }

// Values are the injector's values. They must not be changed.
func (in *Injector) Values() Values { return in.values }

// MeshText is the mesh config as it was given.
func (in *Injector) MeshText() string { return in.opts.Mesh }

// Mesh is the mesh config. It must not be changed.
func (in *Injector) Mesh() *mesh.MeshConfig { return in.mesh }

// defaultRevision is what the charts call the control plane that has no revision of its own (source: REVISION in
// templates/deployment.yaml of the chart istio-discovery, since 1.6).
const defaultRevision = "default"

// Revision of the control plane, as templates and labels have it.
func (in *Injector) Revision() string { return cmp.Or(in.opts.Revision, defaultRevision) }

// Env is one variable of the control plane's environment, or a default where it is empty or not set.
func (in *Injector) Env(key, otherwise string) string { return in.env.value(key, otherwise) }

// APIServer is the cluster's API server, whose defaults the templates see; nil where they see the pod as it is written.
func (in *Injector) APIServer() *admission.Server { return in.apiServer }

// NativeSidecars reports whether native sidecars are on for pods without a setting of their own.
func (in *Injector) NativeSidecars() bool { return in.native }

// NeverMatches and AlwaysMatches return the index of the first selector of the configuration that matches a pod's
// labels, or -1.
func (s *podSelectors) NeverMatches(podLabels map[string]string) int {
	return firstMatch(s.never, podLabels)
}

// AlwaysMatches is NeverMatches for alwaysInjectSelector.
func (s *podSelectors) AlwaysMatches(podLabels map[string]string) int {
	return firstMatch(s.always, podLabels)
}

func firstMatch(all []labels.Selector, podLabels map[string]string) int {
	return slices.IndexFunc(all, func(s labels.Selector) bool { return s.Matches(labels.Set(podLabels)) })
}

// EffectiveProxyConfig is the proxy configuration that templates see for a pod, with warnings about its annotation.
func (p *proxyConfigs) EffectiveProxyConfig(namespace string, podLabels, annotations map[string]string) (*mesh.ProxyConfig, []string, error) {
	if !p.profile.Has(feature.ProxyConfigAnnotation) {
		return p.mesh.GetDefaultConfig(), nil, nil
	}
	text, annotated := annotations[p.profile.ProxyConfigAnnotation()]
	if !annotated && p.plainProxyConfig != nil {
		return p.plainProxyConfig, nil, nil
	}
	var own *string
	if annotated {
		own = &text
	}
	return p.mesh.Effective(p.resources, namespace, podLabels, own)
}

func (p *proxyConfigs) protoToJSON(v any) (string, error) {
	if pc, ok := v.(*mesh.ProxyConfig); ok && pc == p.plainProxyConfig {
		return p.plainProxyJSON()
	}
	return mesh.ProtoToJSON(v, p.profile.Release())
}

// Render renders a template. data's Values, Revision, NativeSidecars, CompliancePolicy, InboundTrafficPolicyMode and
// images are filled in. The error is a *gotemplate.Error where the template fails.
func (in *Injector) Render(t *Template, data *TemplateData) (Rendered, error) {
	in.completeTemplateData(data, t)
	out, _ := in.outputs.Get().(*gotemplate.Output)
	out.Reset(t.marks)
	tmpl := t.tmpl
	if t.nests {
		var err error
		if tmpl, err = in.language.bindRender(t, data, out.Spent); err != nil {
			return Rendered{}, &gotemplate.Error{Template: t.name, Err: err}
		}
	}
	if err := tmpl.Execute(out, data); err != nil {
		in.outputs.Put(out)
		return Rendered{}, gotemplate.ExecuteError(t.name, err)
	}
	return Rendered{out: out}, nil
}

// Release releases the memory of a rendered template.
func (in *Injector) Release(r Rendered) { in.outputs.Put(r.out) }
