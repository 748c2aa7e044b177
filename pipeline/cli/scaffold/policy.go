// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package scaffold generates the first policy and the first RenderPipeline of a new user: commented, valid, and
// with as few fields as possible. It returns texts, and neither reads nor writes files.
package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/cli/importer"
	"github.com/prerig/prerig/policies"
)

// BuiltIn is the policy that comes with Prerig and that a policy can be made of.
const BuiltIn = "istio"

// PolicyOptions are what is chosen for a policy.
type PolicyOptions struct {
	// Namespaces whose pods are injected; none means all.
	Namespaces []string
	// KubernetesVersion is that of the oldest kubelet; empty means the built-in policy's, or what is imported.
	KubernetesVersion string
	// Import is what the policy is made of; nil means of the built-in one.
	Import *importer.Import
}

// Policy returns a policy as a file. The error describes invalid options; a policy that injection would reject is
// never returned.
func Policy(o PolicyOptions) ([]byte, error) {
	if err := checkNamespaces(o.Namespaces); err != nil {
		return nil, err
	}
	var text []byte
	var err error
	if o.Import == nil {
		text, err = builtInPolicy(o)
	} else {
		text, err = importedPolicy(o)
	}
	if err != nil {
		return nil, err
	}
	text = append([]byte(schemaComment("injectionpolicy")), text...)
	parsed, err := v1alpha1.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("writing the policy: %w", err)
	}
	if _, err := fn.New([]*v1alpha1.InjectionPolicy{parsed}); err != nil {
		return nil, fmt.Errorf("writing the policy: %w", err)
	}
	return text, nil
}

// schemaComment returns the line by which editors with YAML's language server find the schema of a kind.
func schemaComment(kind string) string {
	return "# yaml-language-server: $schema=https://raw.githubusercontent.com/prerig/prerig/main/schemas/" + kind +
		"_v1alpha1.json\n"
}

// namespaceRule is what a namespace can be called.
var namespaceRule = lazyregexp.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func checkNamespaces(names []string) error {
	for _, name := range names {
		if !namespaceRule.MatchString(name) {
			return fmt.Errorf("%q is not a valid namespace name: use lowercase letters, digits and -", name)
		}
	}
	return nil
}

// builtInText is what is made of the built-in policy.
var builtInText = template.Must(template.New("policy").Funcs(functions).Parse(`# What Prerig injects, and into which pods. It applies to the files next to and below it.
# Every field: https://github.com/prerig/prerig/blob/main/docs/injection-policy.md
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: istio
  annotations:
    config.kubernetes.io/local-config: "true" # for tools only; not applied to a cluster
spec:
  istio:
    # The oldest kubelet of the cluster; from 1.33 on the proxy is a native sidecar.
    kubernetesVersion: {{ quoted .KubernetesVersion }}
    injector:
      # Istio {{ .Istio }} with its default settings. If you have a mesh, base the policy on it:
      # prerig init --from cluster, or --from the directory of its chart.
      builtIn: istio
      # overrides: # values that differ, by the names of Istio's chart
      #   global: {hub: registry.example.com/istio}
{{- if .Namespaces }}
  # The namespaces whose pods get a sidecar, with their labels in the cluster.
  namespaces:
{{- range .Namespaces }}
  - {name: {{ flow . }}, labels: {istio-injection: enabled}}
{{- end }}
  # Pods of other namespaces get one only if they ask for it: Skip, Inject, or Fail.
  unknownNamespace: Skip
{{- else }}
  # Pods of all namespaces get a sidecar unless they opt out. To use the labels of namespaces, as the cluster does, list them
  # and remove unknownNamespace:
  #   namespaces:
  #   - {name: shop, labels: {istio-injection: enabled}}
  unknownNamespace: Inject
{{- end }}
`))

func builtInPolicy(o PolicyOptions) ([]byte, error) {
	text, ok := policies.Get(BuiltIn)
	if !ok {
		return nil, errors.New("writing the policy: the built-in policy istio is missing from this build")
	}
	base, err := v1alpha1.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the built-in policy %s: %w", BuiltIn, err)
	}
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = base.Spec.Istio.KubernetesVersion
	}
	var out bytes.Buffer
	err = builtInText.Execute(&out, struct {
		PolicyOptions
		Istio string
	}{o, base.Spec.Istio.Version})
	return out.Bytes(), err
}

// importedPolicy is what was imported with what is chosen, and comments at its head.
func importedPolicy(o PolicyOptions) ([]byte, error) {
	p := *o.Import.Policy
	comment := "What Prerig injects, and into which pods. It applies to the files next to and below it.\n" +
		"Every field: https://github.com/prerig/prerig/blob/main/docs/injection-policy.md\n" + o.Import.Comment()
	if p.Spec.Istio != nil {
		istio := *p.Spec.Istio
		if o.KubernetesVersion != "" {
			istio.KubernetesVersion = o.KubernetesVersion
		}
		p.Spec.Istio = &istio
	}
	if len(o.Namespaces) > 0 {
		label, value := "istio-injection", "enabled"
		if p.Spec.Istio != nil && p.Spec.Istio.Revision != "" && p.Spec.Istio.Revision != "default" {
			label, value = "istio.io/rev", p.Spec.Istio.Revision
		}
		p.Spec.Namespaces = chosenNamespaces(p.Spec.Namespaces, o.Namespaces, map[string]string{label: value})
		p.Spec.UnknownNamespace = v1alpha1.UnknownNamespaceSkip
		from, _, _ := strings.Cut(comment, "\nunknownNamespace:")
		comment = from + "\nnamespaces: those whose pods get a sidecar; pods of others only if they ask for it (unknownNamespace: Skip)."
	}
	return importer.Marshal(&p, comment)
}

// chosenNamespaces returns the namespaces of the names with labels, and with their imported objects. Of other
// namespaces it keeps ProxyConfigs, which apply to the whole mesh if they are in its root namespace.
func chosenNamespaces(imported []v1alpha1.Namespace, names []string, labels map[string]string) []v1alpha1.Namespace {
	var out []v1alpha1.Namespace
	for _, name := range names {
		one := v1alpha1.Namespace{Name: name}
		if i := slices.IndexFunc(imported, func(n v1alpha1.Namespace) bool { return n.Name == name }); i >= 0 {
			one = imported[i]
			one.Annotations = nil
		}
		one.Labels = labels
		out = append(out, one)
	}
	for _, one := range imported {
		if len(one.ProxyConfigs) > 0 && !slices.Contains(names, one.Name) {
			out = append(out, v1alpha1.Namespace{Name: one.Name, ProxyConfigs: one.ProxyConfigs})
		}
	}
	return out
}
