// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// policyBuilder fills the policy's spec from one control plane.
type policyBuilder struct {
	*Import
	plane *controlPlane
	spec  v1alpha1.InjectionPolicySpec
	// known is the version in the values themselves.
	known string
	// origins lists the origins of the sidecars.
	origins []string
}

// setInjector copies the two ConfigMaps unchanged.
func (b *policyBuilder) setInjector() {
	p := b.plane
	i := &v1alpha1.Istio{
		Injector: v1alpha1.Injector{
			Config: podmap.TextAt(p.injector.Value, "data", "config"),
			Values: podmap.TextAt(p.injector.Value, "data", "values"),
		},
	}
	if p.revision != defaultRevision {
		i.Revision = p.revision
	}
	if p.mesh != nil {
		i.MeshConfig = podmap.TextAt(p.mesh.Value, "data", "mesh")
	} else {
		b.addWarning("the input has no ConfigMap %s with data.mesh: the mesh config is the version's default",
			meshName+revisionSuffix(p.revision))
	}
	b.spec.Istio = i
	b.rootNamespace()
	b.setVersion()
}

// rootNamespace is that of the control plane, where the mesh config does not name one (pilot/pkg/bootstrap/mesh.go). It
// is only written where it is not the usual one.
func (b *policyBuilder) rootNamespace() {
	var mesh struct {
		RootNamespace string `json:"rootNamespace"`
	}
	// A mesh config that cannot be read is the engine's to complain about, with its line.
	_ = yaml.Unmarshal([]byte(b.spec.Istio.MeshConfig), &mesh)
	if mesh.RootNamespace == "" && b.plane.namespace != "" && b.plane.namespace != "istio-system" {
		b.spec.Istio.RootNamespace = b.plane.namespace
	}
}

// unreleased is the version of the charts in Istio's repository, until a release is made of them. Istio 1.0 had none of
// these labels.
const unreleased = "1.0.0"

// setVersion determines the version of the control plane, unless the values contain it: from the labels that the
// chart and the operator set on the ConfigMap. The image of istiod, which is more reliable, is read in istiod.
func (b *policyBuilder) setVersion() {
	var values struct {
		Global struct {
			Tag any `json:"tag"`
		} `json:"global"`
	}
	// Values that cannot be read are the engine's to complain about, with their line.
	_ = yaml.Unmarshal([]byte(b.spec.Istio.Injector.Values), &values)
	if v, ok := istio.ParseVersion(fmt.Sprint(values.Global.Tag)); ok {
		b.known = v.String()
		return
	}
	labels := b.plane.injector.labels
	for _, candidate := range []string{
		labels["app.kubernetes.io/version"],
		strings.TrimPrefix(labels["helm.sh/chart"], "istiod-"),
		labels["operator.istio.io/version"],
	} {
		if v, ok := istio.ParseVersion(candidate); ok && candidate != unreleased {
			b.spec.Istio.Version = v.String()
			return
		}
	}
}

// checkVersion uses the version that the user set, and warns if none is known at all: an injector of another
// version behaves differently.
func (b *policyBuilder) checkVersion(given string) {
	if given != "" {
		b.spec.Istio.Version = given
	}
	if b.spec.Istio.Version == "" && b.known == "" {
		b.addWarning("the input does not contain the version of Istio: set --istio-version or spec.istio.version")
	}
}

// envReference finds what a template reads of istiod's environment.
var envReference = lazyregexp.New("\\benv\\s+(?:\"([A-Za-z_][A-Za-z0-9_]*)\"|`([A-Za-z_][A-Za-z0-9_]*)`)")

// injectorEnv are the settings of istiod's environment that change the injector itself and not a template.
var injectorEnv = []string{
	"COMPLIANCE_POLICY",
	"ENABLE_LEGACY_FSGROUP_INJECTION",
	"ENABLE_NATIVE_SIDECARS",
	"PILOT_ENABLE_INBOUND_PASSTHROUGH",
}

// readDeployment reads from the Deployment the settings that are in no ConfigMap: the version, and the part of its
// environment that the injector reads. Other variables are omitted: they may be secret and do not matter.
func (b *policyBuilder) readDeployment() {
	wanted := map[string]bool{}
	for _, name := range injectorEnv {
		wanted[name] = true
	}
	named := map[string]bool{}
	for _, m := range envReference.FindAllStringSubmatch(b.spec.Istio.Injector.Config, -1) {
		wanted[m[1]+m[2]], named[m[1]+m[2]] = true, true
	}
	if b.plane.istiod == nil {
		if len(named) > 0 {
			b.addWarning("the templates read %s of istiod's environment, and the input has no istiod Deployment: their defaults are used unless you set spec.istio.istiodEnv",
				strings.Join(sortedNames(named), ", "))
		}
		return
	}
	container := discoveryContainer(b.plane.istiod)
	for _, e := range objectsOf(container["env"]) {
		name, _ := e["name"].(string)
		if !wanted[name] {
			continue
		}
		value, ok := e["value"].(string)
		if !ok {
			b.addWarning("%s of istiod's environment is set by a reference (valueFrom): set spec.istio.istiodEnv.%s yourself", name, name)
			continue
		}
		if b.spec.Istio.IstiodEnv == nil {
			b.spec.Istio.IstiodEnv = map[string]string{}
		}
		b.spec.Istio.IstiodEnv[name] = value
	}
	if shared := variableValue(container, "SHARED_MESH_CONFIG"); shared != "" {
		b.addWarning("istiod also reads a shared mesh config from the ConfigMap %s (SHARED_MESH_CONFIG), which is not merged into spec.istio.meshConfig", shared)
	}
	image, _ := container["image"].(string)
	if v, ok := istio.ParseVersion(imageTag(image)); ok {
		b.spec.Istio.Version = v.String()
	}
}

// discoveryContainer is the container of istiod (pilot before 1.5) in a Deployment, or nil.
func discoveryContainer(o *clusterObject) map[string]any {
	for _, c := range objectsOf(podmap.ValueAt(o.Value, "spec", "template", "spec", "containers")) {
		if c["name"] == "discovery" {
			return c
		}
	}
	return nil
}

// variableValue is that of a container's variable.
func variableValue(container map[string]any, name string) string {
	for _, e := range objectsOf(container["env"]) {
		if e["name"] == name {
			s, _ := e["value"].(string)
			return s
		}
	}
	return ""
}

// imageTag of an image, without its digest.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndexAny(image, "/:")
	if i < 0 || image[i] == '/' {
		return ""
	}
	return image[i+1:]
}

// setKubeletVersion uses the oldest kubelet's version, which decides about native sidecars.
func (b *policyBuilder) setKubeletVersion(all []*clusterObject, opts Options) {
	if opts.KubernetesVersion != "" {
		b.spec.Istio.KubernetesVersion = opts.KubernetesVersion
		return
	}
	var oldest *version.Version
	for _, o := range all {
		if o.kind != "Node" {
			continue
		}
		v, err := version.ParseGeneric(podmap.TextAt(o.Value, "status", "nodeInfo", "kubeletVersion"))
		if err != nil {
			continue
		}
		if oldest == nil || v.LessThan(oldest) {
			oldest = v
		}
	}
	if oldest != nil {
		b.spec.Istio.KubernetesVersion = fmt.Sprintf("%d.%d", oldest.Major(), oldest.Minor())
	}
}

// noteSecrets reports that Secrets were found and omitted.
func (b *policyBuilder) noteSecrets(all []*clusterObject) {
	n := 0
	for _, o := range all {
		if o.kind == "Secret" {
			n++
		}
	}
	if n > 0 {
		b.addNote("%s in the input ignored; no Secret is needed", countText(n, "Secret"))
	}
}

// originText describes the origins of the policy.
func (b *policyBuilder) originText() string {
	namespaces := countText(len(b.spec.Namespaces), "namespace")
	p := b.plane
	if p == nil {
		return strings.Join(b.origins, "; ") + "; " + namespaces
	}
	s := "revision " + p.revision
	if p.namespace != "" {
		s += " in namespace " + p.namespace
	}
	switch {
	case b.spec.Istio.Version != "":
		s = "Istio " + b.spec.Istio.Version + ", " + s
	case b.known != "":
		s = "Istio " + b.known + ", " + s
	case b.spec.Istio.Injector.BuiltIn != "":
		s = "Istio as in the built-in policy, " + s
	default:
		s = "Istio, " + s
	}
	s += fmt.Sprintf("; %s, %s", countText(len(b.spec.Istio.Webhooks), "webhook configuration"), namespaces)
	for _, origin := range b.origins {
		s += "; " + origin
	}
	return s
}
