// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
)

// Names of the control plane's variables that change the injector.
const (
	envNativeSidecars   = "ENABLE_NATIVE_SIDECARS"
	envCompliancePolicy = "COMPLIANCE_POLICY"
	envRewriteTCP       = "REWRITE_TCP_PROBES"
	envLegacyFSGroup    = "ENABLE_LEGACY_FSGROUP_INJECTION"
	envJWTPolicy        = "JWT_POLICY"
)

// EnvBool is a boolean variable of the control plane's environment, or a default where it is not set or is no boolean, as
// pkg/env of Istio reads it.
func (in *Injector) EnvBool(key string, otherwise bool) bool {
	if v, err := strconv.ParseBool(in.env[key]); err == nil {
		return v
	}
	return otherwise
}

// RewritesTCPProbes reports whether TCP probes go by way of the agent.
func (in *Injector) RewritesTCPProbes() bool {
	return in.profile.Has(feature.ProberTCP) && !(in.profile.Has(feature.ProberTCPSwitch) && !in.EnvBool(envRewriteTCP, true))
}

// LegacyFSGroup reports whether the code of the version assigns Istio's group to pods: it does unless it is
// disabled or uses the tokens of old Kubernetes versions. The chart derives the variable for those from
// values.global.jwtPolicy.
func (in *Injector) LegacyFSGroup() bool {
	const oldTokens = "first-party-jwt"
	policy := in.Env(envJWTPolicy, in.values.String("global", "jwtPolicy"))
	return in.profile.Has(feature.FSGroupEnv) && in.EnvBool(envLegacyFSGroup, policy != oldTokens)
}

// nativeKubelet is the minor version of the kubelet from which Istio 1.27 and later use native sidecars by themselves
// (source: pkg/kube/inject/webhook.go of 1.27).
const nativeKubelet = 33

// decideNative settles whether native sidecars are on. Up to 1.26 templates read the environment, so the setting is
// written to it.
func (in *Injector) decideNative() error {
	if !in.profile.Has(feature.NativeSidecars) {
		if in.opts.Native == NativeEnabled {
			in.warnings = append(in.warnings, fmt.Sprintf("Istio 1.%d has no native sidecars: nativeSidecars is ignored", in.profile.Minor()))
		}
		return nil
	}
	switch in.opts.Native {
	case NativeEnabled, NativeDisabled:
		in.native = in.opts.Native == NativeEnabled
		if in.env == nil {
			in.env = map[string]string{}
		}
		in.env[envNativeSidecars] = strconv.FormatBool(in.native)
		return nil
	case NativeAuto, "":
	default:
		return fmt.Errorf("reading nativeSidecars: %q is not %s, %s or %s", in.opts.Native, NativeAuto, NativeEnabled, NativeDisabled)
	}
	asked, set := in.env[envNativeSidecars]
	if !in.profile.Has(feature.NativeSidecarAuto) {
		in.native, _ = strconv.ParseBool(asked)
		return nil
	}
	if set && asked != "auto" {
		in.native = asked == "true"
		if !in.native && asked != "false" {
			in.warnings = append(in.warnings, fmt.Sprintf("istiod takes %s=%q for false: it knows true, false and auto only", envNativeSidecars, asked))
		}
		return nil
	}
	if in.opts.KubernetesVersion == "" {
		in.native = true
		in.warnings = append(in.warnings, fmt.Sprintf("native sidecars depend on the kubelets, whose version is not known: 1.%d or newer is taken; set kubernetesVersion or nativeSidecars",
			nativeKubelet))
		return nil
	}
	v, ok := ParseVersion(strings.TrimPrefix(in.opts.KubernetesVersion, "v"))
	if !ok {
		return fmt.Errorf("reading kubernetesVersion %q: want one such as 1.34", in.opts.KubernetesVersion)
	}
	in.native = v.Minor >= nativeKubelet
	return nil
}

// decideAdmission finds out whose defaults the templates see.
func (in *Injector) decideAdmission() error {
	switch in.opts.Admission {
	case AdmissionRaw:
	case AdmissionDefaulted, "":
		server, err := admission.NewServer(in.opts.KubernetesVersion)
		if err != nil {
			return fmt.Errorf("reading kubernetesVersion: %w", err)
		}
		in.apiServer = &server
	default:
		return fmt.Errorf("reading admission: %q is neither %s nor %s", in.opts.Admission, AdmissionDefaulted, AdmissionRaw)
	}
	return nil
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
	d.ProxyImage = in.imageForPart(d, "proxy")
	d.ProxyInitImage = in.imageForPart(d, "proxy_init")
}

// DeploymentMeta returns the template's view of the workload in the type that the version has. pod is the pod's metadata,
// which the whole ObjectMeta of versions up to 1.21 carries.
func (in *Injector) DeploymentMeta(name, namespace string, pod *metav1.ObjectMeta) any {
	if deploymentMetaSpan.Contains(in.profile.release) {
		meta := *pod
		meta.Name, meta.Namespace, meta.GenerateName = name, namespace, ""
		return meta
	}
	return types.NamespacedName{Name: name, Namespace: namespace}
}

// imageForPart is HUB/IMAGE:TAG with the image type at the tag's end. values.global.PART.image is the image (source:
// ProxyImage and ProxyInitImage in pkg/kube/inject/inject.go of Istio).
func (in *Injector) imageForPart(d *TemplateData, part string) string {
	name := in.values.String("global", part, "image")
	if name == "" {
		name = "proxyv2"
	}
	variant := ""
	if in.profile.Has(feature.ImageVariant) {
		variant = in.values.String("global", "variant")
	}
	kind := variant
	if image := d.ProxyConfig.GetImage(); image != nil && (part == "proxy" || !in.profile.Has(feature.InitImageApart)) {
		kind = image.GetImageType()
		if kind == "" && in.profile.Has(feature.ImageVariantEmpty) {
			kind = variant
		}
	}
	if k, ok := d.ObjectMeta.Annotations["sidecar.istio.io/proxyImageType"]; ok {
		kind = k
	}
	return in.values.String("global", "hub") + "/" + name + ":" + typedTag(in.values.String("global", "tag"), kind)
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

func wholeCPUs(quantity string, otherwise int) int {
	q, err := resource.ParseQuantity(quantity)
	if err != nil {
		return otherwise
	}
	return int(math.Ceil(float64(q.MilliValue()) / 1000))
}
