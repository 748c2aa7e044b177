// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/podvalidation"
	"github.com/prerig/prerig/fn/result"
)

// chartTemplates are the templates that Istio's chart brings.
var chartTemplates = []string{"sidecar", "gateway", "grpc-simple", "grpc-agent", "waypoint", "kube-gateway",
	"agentgateway"}

// warnOfTemplates warns of the input's own templates that do not fit native sidecars: the API server would reject a pod
// that asks for one beside the default templates. The injection reports all other mistakes in templates.
func (imp *Import) warnOfTemplates() {
	spec := imp.Policy.Spec
	if spec.Istio == nil || spec.Istio.NativeSidecars == v1alpha1.NativeSidecarsDisabled {
		return
	}
	for _, name := range ownTemplates(&spec.Istio.Injector) {
		if problem := tryTemplate(imp.Policy, name); problem != "" {
			imp.addWarning("template %s does not fit native sidecars: in a pod with inject.istio.io/templates: sidecar,%s, %s. "+
				"Write it for the place where the proxy is, with {{ if .NativeSidecars }}initContainers{{ else }}containers{{ end }} "+
				"from Istio 1.27 on, or set spec.istio.nativeSidecars to Disabled", name, name,
				strings.TrimSuffix(problem, "."))
		}
	}
}

// ownTemplates are the names of the templates that are not the chart's, in order.
func ownTemplates(injector *v1alpha1.Injector) []string {
	var config struct {
		Templates map[string]string `json:"templates"`
	}
	// A configuration that cannot be read is the engine's to report, with its line.
	_ = yaml.Unmarshal([]byte(injector.Config), &config)
	names := map[string]bool{}
	for name := range config.Templates {
		names[name] = true
	}
	overrides, _ := podmap.ValueAt(injector.Overrides, "sidecarInjectorWebhook", "templates").(map[string]any)
	for name := range overrides {
		names[name] = true
	}
	return slices.DeleteFunc(sortedNames(names), func(name string) bool {
		return slices.Contains(chartTemplates, name)
	})
}

// tryTemplate injects a template beside sidecar into a small pod as the policy has it, and with an ordinary proxy. It
// returns why the API server would reject the former alone, or "" if it would not.
func tryTemplate(policy *v1alpha1.InjectionPolicy, name string) string {
	asks := "inject.istio.io/templates: \"sidecar," + name + "\""
	problem := rejectionOf(policy, asks)
	if problem == "" || rejectionOf(policy, asks+", sidecar.istio.io/nativeSidecar: \"false\"") != "" {
		return ""
	}
	return problem
}

const templateProbe = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web, sidecar.istio.io/inject: "true"}
      annotations: {%s}
    spec:
      containers: [{name: web, image: web}]
`

// rejectionOf returns the first reason why the API server would reject the containers of a pod with annotations.
func rejectionOf(own *v1alpha1.InjectionPolicy, annotations string) string {
	text, err := yaml.Marshal(own)
	if err != nil {
		return ""
	}
	policy, err := v1alpha1.Parse(text)
	if err != nil {
		return ""
	}
	policy.Spec.Namespaces, policy.Spec.UnknownNamespace = nil, v1alpha1.UnknownNamespaceInject
	file, err := manifest.Parse("probe.yaml", fmt.Appendf(nil, templateProbe, annotations))
	if err != nil {
		return ""
	}
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{policy})
	if err != nil {
		return ""
	}
	report, err := injector.Run(context.Background(), []fn.Item{{Doc: file.Docs[0], Path: "probe.yaml"}})
	if err != nil {
		return ""
	}
	for _, r := range report.Results {
		if r.Severity == result.Error && r.Tags[result.TagCode] == podvalidation.CodeContainer {
			return r.Message
		}
	}
	return ""
}
