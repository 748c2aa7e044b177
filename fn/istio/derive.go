// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/quantity"
)

// Names of the control plane's variables that change the injector.
const (
	envNativeSidecars   = "ENABLE_NATIVE_SIDECARS"
	envCompliancePolicy = "COMPLIANCE_POLICY"
	envRewriteTCP       = "REWRITE_TCP_PROBES"
	envLegacyFSGroup    = "ENABLE_LEGACY_FSGROUP_INJECTION"
	envJWTPolicy        = "JWT_POLICY"
)

// environment holds the variables of the control plane.
type environment map[string]string

// value returns a variable, or a default where it is empty or not set.
func (e environment) value(key, otherwise string) string {
	return cmp.Or(e[key], otherwise)
}

// boolean returns a boolean variable, or a default where it is not set or is no boolean, as pkg/env of Istio reads it.
func (e environment) boolean(key string, otherwise bool) bool {
	if v, err := strconv.ParseBool(e[key]); err == nil {
		return v
	}
	return otherwise
}

// with returns the environment with a variable, which it sets in place unless the environment is nil.
func (e environment) with(key, value string) environment {
	if e == nil {
		e = environment{}
	}
	e[key] = value
	return e
}

// RewritesTCPProbes reports whether TCP probes go by way of the agent.
func (in *Injector) RewritesTCPProbes() bool {
	return in.profile.Has(feature.ProberTCP) && !(in.profile.Has(feature.ProberTCPSwitch) && !in.env.boolean(envRewriteTCP, true))
}

// LegacyFSGroup reports whether the code of the version assigns Istio's group to pods: it does unless it is
// disabled or uses the tokens of old Kubernetes versions. The chart derives the variable for those from
// values.global.jwtPolicy.
func (in *Injector) LegacyFSGroup() bool {
	const oldTokens = "first-party-jwt"
	policy := in.env.value(envJWTPolicy, in.values.String("global", "jwtPolicy"))
	return in.profile.Has(feature.FSGroupEnv) && in.env.boolean(envLegacyFSGroup, policy != oldTokens)
}

// nativeKubelet is the minor version of the kubelet from which Istio 1.27 and later use native sidecars by themselves
// (source: pkg/kube/inject/webhook.go of 1.27).
const nativeKubelet = 33

// decideNative decides whether native sidecars are on.
func decideNative(o Options, p *Profile, env environment) (native bool, warnings []string, err error) {
	if !p.Has(feature.NativeSidecars) {
		if o.Native == NativeEnabled {
			warnings = []string{fmt.Sprintf("Istio 1.%d has no native sidecars: nativeSidecars is ignored", p.Minor())}
		}
		return false, warnings, nil
	}
	switch o.Native {
	case NativeEnabled, NativeDisabled:
		return o.Native == NativeEnabled, nil, nil
	case NativeAuto, "":
	default:
		return false, nil, fmt.Errorf("reading nativeSidecars: %q is not %s, %s or %s", o.Native, NativeAuto, NativeEnabled, NativeDisabled)
	}
	asked, set := env[envNativeSidecars]
	if !p.Has(feature.NativeSidecarAuto) {
		return env.boolean(envNativeSidecars, false), nil, nil
	}
	if set && asked != "auto" {
		if asked != "true" && asked != "false" {
			warnings = []string{fmt.Sprintf("istiod takes %s=%q for false: it knows true, false and auto only", envNativeSidecars, asked)}
		}
		return asked == "true", warnings, nil
	}
	if o.KubernetesVersion == "" {
		return true, []string{fmt.Sprintf("native sidecars depend on the kubelets, whose version is not known: 1.%d or newer is taken; set kubernetesVersion or nativeSidecars",
			nativeKubelet)}, nil
	}
	v, ok := ParseVersion(strings.TrimPrefix(o.KubernetesVersion, "v"))
	if !ok {
		return false, nil, fmt.Errorf("reading kubernetesVersion %q: want one such as 1.34", o.KubernetesVersion)
	}
	return v.Minor >= nativeKubelet, nil, nil
}

// chooseAPIServer returns the API server whose defaults the templates see; nil where they see the pod as it is written.
func chooseAPIServer(o Options) (*admission.Server, error) {
	switch o.Admission {
	case AdmissionRaw:
		return nil, nil
	case AdmissionDefaulted, "":
		server, err := admission.NewServer(o.KubernetesVersion)
		if err != nil {
			return nil, fmt.Errorf("reading kubernetesVersion: %w", err)
		}
		return &server, nil
	}
	return nil, fmt.Errorf("reading admission: %q is neither %s nor %s", o.Admission, AdmissionDefaulted, AdmissionRaw)
}

// completeTemplateData fills in what does not depend on the pod, and the images.
func (in *Injector) completeTemplateData(d *TemplateData, t *Template) {
	d.Values = in.values
	if t.mutates {
		d.Values = in.values.clone()
	}
	d.Revision = in.Revision()
	d.NativeSidecars = in.native
	d.CompliancePolicy = in.env[envCompliancePolicy]
	d.InboundTrafficPolicyMode = "passthrough"
	if in.mesh.GetInboundTrafficPolicy().GetMode().String() == "LOCALHOST" {
		d.InboundTrafficPolicyMode = "localhost"
	}
	d.ProxyImage = imageForPart(d, in.profile, in.values, "proxy")
	d.ProxyInitImage = imageForPart(d, in.profile, in.values, "proxy_init")
}

// imageForPart is HUB/IMAGE:TAG with the image type at the tag's end. values.global.PART.image is the image (source:
// ProxyImage and ProxyInitImage in pkg/kube/inject/inject.go of Istio).
func imageForPart(d *TemplateData, p *Profile, values Values, part string) string {
	name := values.String("global", part, "image")
	if name == "" {
		name = "proxyv2"
	}
	variant := ""
	if p.Has(feature.ImageVariant) {
		variant = values.String("global", "variant")
	}
	kind := variant
	if image := d.ProxyConfig.GetImage(); image != nil && (part == "proxy" || !p.Has(feature.InitImageApart)) {
		kind = image.GetImageType()
		if kind == "" && p.Has(feature.ImageVariantEmpty) {
			kind = variant
		}
	}
	if k, ok := d.ObjectMeta.Annotations["sidecar.istio.io/proxyImageType"]; ok {
		kind = k
	}
	return values.String("global", "hub") + "/" + name + ":" + typedTag(values.String("global", "tag"), kind)
}

// typedTag replaces the image type at the end of a tag, or appends it. The type default removes it.
func typedTag(tag, kind string) string {
	if kind == "" {
		return tag
	}
	for _, known := range []string{"-distroless", "-debug"} {
		if t, ok := strings.CutSuffix(tag, known); ok {
			tag = t
			break
		}
	}
	if kind == "default" {
		return tag
	}
	return tag + "-" + kind
}

// EstimateConcurrency returns the number of the proxy's threads: the value of the proxy config, or for 0 the CPU
// limit or request in whole CPUs, or 2 (source: estimateConcurrency in pkg/kube/inject/inject.go of 1.11 to 1.17).
// 1.10 has the field and leaves it 0.
func (in *Injector) EstimateConcurrency(pc *mesh.ProxyConfig, annotations map[string]string) int {
	const usual = 2
	if !in.profile.Has(feature.ConcurrencyEstimated) {
		return 0
	}
	if pc == nil || pc.Workers == nil {
		return usual
	}
	if n := pc.Workers.GetValue(); n > 0 {
		return int(n)
	}
	if limit, ok := annotations["sidecar.istio.io/proxyCPULimit"]; ok {
		return wholeCPUs(limit, usual)
	}
	if request, ok := annotations["sidecar.istio.io/proxyCPU"]; ok {
		return wholeCPUs(request, usual)
	}
	for _, kind := range []string{"limits", "requests"} {
		if cpu := in.values.String("global", "proxy", "resources", kind, "cpu"); cpu != "" {
			if n := wholeCPUs(cpu, -1); n >= 0 {
				return n
			}
		}
	}
	return usual
}

func wholeCPUs(text string, otherwise int) int {
	q, err := quantity.Parse(text)
	if err != nil {
		return otherwise
	}
	return int(math.Ceil(float64(q.MilliValue()) / 1000))
}
