// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/cli/importer"
	"github.com/prerig/prerig/pipeline/review/diff"
	"github.com/prerig/prerig/pipeline/verify/live"
)

// istioNamespace is where control planes of Istio are by default.
const istioNamespace = "istio-system"

// importResources are what an import reads of a cluster. No Secrets are among them.
func importResources(all bool) []live.Resource {
	one := func(group, version, name, kind string, cluster, needed bool) live.Resource {
		return live.Resource{
			GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: name},
			Kind:                 kind, Cluster: cluster, Needed: needed,
		}
	}
	proxyConfigs := one("networking.istio.io", "v1beta1", "proxyconfigs", "ProxyConfig", true, false)
	proxyConfigs.Optional = true
	out := []live.Resource{
		one("", "v1", "configmaps", "ConfigMap", false, true),
		one("apps", "v1", "deployments", "Deployment", false, false),
		one("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", true,
			false),
		one("", "v1", "namespaces", "Namespace", true, false),
		one("", "v1", "nodes", "Node", true, false),
		one("", "v1", "serviceaccounts", "ServiceAccount", true, false),
		one("", "v1", "limitranges", "LimitRange", true, false),
		proxyConfigs,
	}
	if !all {
		return out
	}
	return append(out,
		one("opentelemetry.io", "v1beta1", "opentelemetrycollectors", "OpenTelemetryCollector", false, false),
		one("opentelemetry.io", "v1alpha1", "instrumentations", "Instrumentation", false, false),
		one("cloudsql.cloud.google.com", "v1", "authproxyworkloads", "AuthProxyWorkload", false, false),
	)
}

// readCluster lists the objects of the cluster, in the form in which kubectl would pipe them.
func (im *importRun) readCluster(ctx context.Context) ([]importer.Object, error) {
	im.charts = 0
	if len(im.valuesFiles) > 0 {
		return nil, errValuesWithoutChart
	}
	config, err := live.Config(im.kubeconfig, im.kubeContext)
	if errors.Is(err, live.ErrNoKubeconfig) {
		return nil, fmt.Errorf("%w, or specify files with the output of kubectl get -o yaml instead of a cluster", err)
	}
	if err != nil {
		return nil, err
	}
	namespaces := []string{im.options.Namespace}
	switch {
	case im.all:
		namespaces = nil
	case im.options.Namespace == "":
		namespaces = []string{istioNamespace}
	}
	bar := newBar(im.streams.Err, "reading the cluster")
	found, err := live.List(ctx, config, importResources(im.all), namespaces)
	bar.clearLine()
	if err != nil {
		return nil, err
	}
	for _, resource := range found.Unread {
		if isExtra(resource) {
			continue
		}
		im.unread = append(im.unread, resource)
	}
	var out []importer.Object
	for _, obj := range found.Objects {
		out = append(out, importer.Object{Path: "the cluster", Value: obj})
	}
	return out, nil
}

// unreadableResourceNotice reports that a resource may not be read.
func unreadableResourceNotice(resource string) string {
	return resource + " may not be read, so the policy does not reflect them"
}

// isExtra reports whether a resource is one that many clusters do not have.
func isExtra(resource string) bool {
	return resource == "opentelemetrycollectors" || resource == "instrumentations" || resource == "authproxyworkloads"
}

// compareWith prints the differences between a committed policy and the imported one, and returns the error for the
// exit code.
func (im *importRun) compareWith(name string, imported *v1alpha1.InjectionPolicy) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	written, err := importer.Marshal(imported, "")
	if err != nil {
		return err
	}
	committed, err := committedPolicy(name, text, written)
	if err != nil {
		return err
	}
	withDefaults, err := v1alpha1.Parse(written)
	if err != nil {
		return err
	}
	withDefaults.Metadata = committed.Metadata
	old, err := v1alpha1.Marshal(committed)
	if err != nil {
		return err
	}
	now, err := v1alpha1.Marshal(withDefaults)
	if err != nil {
		return err
	}
	shown := diff.Unified(name, []diff.Chunk{{Old: old, New: now}})
	if len(shown) == 0 {
		return nil
	}
	if _, err := im.streams.Out.Write(shown); err != nil {
		return fmt.Errorf("writing standard output: %w", err)
	}
	return findingsError{name + " differs from the import; update it with --to " + name +
		", which keeps the parts that an import does not write"}
}

// committedPolicy reads the policy of a file that an imported one is compared with, without the parts of its spec that
// an import leaves to people.
func committedPolicy(name string, text, imported []byte) (*v1alpha1.InjectionPolicy, error) {
	found, _, err := readPolicyObject(name, text)
	if err != nil {
		return nil, err
	}
	spec, _ := found["spec"].(map[string]any)
	left, err := leftToPeople(spec, imported)
	if err != nil {
		return nil, err
	}
	spec = maps.Clone(spec)
	maps.DeleteFunc(spec, func(key string, _ any) bool { return key != "istio" && left[key] != nil })
	if istio, ok := spec["istio"].(map[string]any); ok {
		istio = maps.Clone(istio)
		for _, key := range leftKeys {
			delete(istio, key)
		}
		spec["istio"] = istio
	}
	found["spec"] = spec
	kept, err := yaml.Marshal(found)
	if err != nil {
		return nil, err
	}
	p, err := v1alpha1.Parse(bytes.TrimSpace(kept))
	if err != nil {
		return nil, fmt.Errorf("reading the policy %s: %w", name, err)
	}
	return p, nil
}
