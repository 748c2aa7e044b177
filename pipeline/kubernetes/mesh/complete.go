// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/cli/importer"
)

// The labels of the webhooks of a revision tag, and what a revision without a name is called.
const (
	labelRevision   = "istio.io/rev"
	labelTag        = "istio.io/tag"
	defaultRevision = "default"
)

// completeFromCluster returns a policy with what it leaves to the cluster.
func completeFromCluster(policy *v1alpha1.InjectionPolicy,
	objects []importer.Object) (*v1alpha1.InjectionPolicy, []string, error) {
	out := *policy
	out.Metadata = v1alpha1.Metadata{
		Name: policy.Metadata.Name, Namespace: policy.Metadata.Namespace,
		Annotations: map[string]string{v1alpha1.CompletedAnnotation: string(v1alpha1.FromCluster)},
	}
	out.Spec.From = ""
	listed := importer.Namespaces(objects)
	if len(listed) == 0 {
		return nil, nil, errors.New("the cluster lists no namespaces")
	}
	out.Spec.Namespaces = mergeNamespaces(listed, policy.Spec.Namespaces)
	out.Spec.UnknownNamespace = cmp.Or(policy.Spec.UnknownNamespace, v1alpha1.UnknownNamespaceFail)
	if policy.Spec.Istio == nil || policy.Spec.Istio.Injector.Config != "" || policy.Spec.Istio.Injector.BuiltIn != "" {
		return &out, nil, nil
	}
	revision := revisionOf(cmp.Or(policy.Spec.Istio.Revision, defaultRevision), objects)
	imported, err := importer.Policy(objects, importer.Options{Revision: revision, Version: policy.Spec.Istio.Version})
	if err != nil {
		return nil, nil, err
	}
	if imported.Policy.Spec.Istio == nil {
		return nil, nil, fmt.Errorf("the cluster has no control plane of Istio of the revision %s", revision)
	}
	out.Spec.Istio = mergeIstio(imported.Policy.Spec.Istio, policy.Spec.Istio)
	return &out, imported.Warnings, missingControlPlaneFacts(out.Spec.Istio, revision)
}

// missingControlPlaneFacts returns what neither the cluster nor the policy specifies about a control plane. A render
// without it would remove proxies, or use defaults for them.
func missingControlPlaneFacts(istio *v1alpha1.Istio, revision string) error {
	switch {
	case !hasOwnWebhooks(istio, revision):
		return fmt.Errorf("the cluster lists no MutatingWebhookConfigurations of the revision %s, and the policy has no istio.webhooks", revision)
	case istio.MeshConfig == "":
		return fmt.Errorf("the cluster lists no ConfigMap with the mesh config of the revision %s, and the policy has no istio.meshConfig", revision)
	}
	return nil
}

// hasOwnWebhooks reports whether any of the webhooks calls the control plane's own revision: those of others are
// listed, too.
func hasOwnWebhooks(istio *v1alpha1.Istio, revision string) bool {
	return slices.ContainsFunc(istio.Webhooks, func(w v1alpha1.Webhook) bool { return w.Revision == "" || w.Revision == revision })
}

// mergeNamespaces returns the namespaces of the cluster by name, with those that the policy lists in their place. What
// the policy does not list of objects in one is as the cluster has it.
func mergeNamespaces(listed, own []v1alpha1.Namespace) []v1alpha1.Namespace {
	all := map[string]v1alpha1.Namespace{}
	for _, one := range listed {
		all[one.Name] = one
	}
	for _, one := range own {
		before := all[one.Name]
		if len(one.ServiceAccounts) == 0 {
			one.ServiceAccounts = before.ServiceAccounts
		}
		if len(one.LimitRanges) == 0 {
			one.LimitRanges = before.LimitRanges
		}
		if len(one.ProxyConfigs) == 0 {
			one.ProxyConfigs = before.ProxyConfigs
		}
		all[one.Name] = one
	}
	return slices.SortedFunc(maps.Values(all), func(a, b v1alpha1.Namespace) int { return strings.Compare(a.Name, b.Name) })
}

// mergeIstio merges a policy's own settings over the imported ones.
func mergeIstio(imported, own *v1alpha1.Istio) *v1alpha1.Istio {
	out := *imported
	to, from := reflect.ValueOf(&out).Elem(), reflect.ValueOf(*own)
	for i := range from.NumField() {
		field := from.Type().Field(i).Name
		switch {
		case field == "Injector" || field == "Revision" || from.Field(i).IsZero():
		case from.Field(i).Kind() == reflect.Map && to.Field(i).Len() > 0:
			for entries := from.Field(i).MapRange(); entries.Next(); {
				to.Field(i).SetMapIndex(entries.Key(), entries.Value())
			}
		default:
			to.Field(i).Set(from.Field(i))
		}
	}
	out.Injector.Overrides = own.Injector.Overrides
	return &out
}

// revisionOf returns the revision that a name refers to: the name's own control plane, or the one that the revision
// tag of that name points to. The tag default overrides the control plane without a revision: istioctl
// tag set default changes the webhooks of the latter to match no object (istioctl/pkg/tag of Istio 1.31).
func revisionOf(name string, objects []importer.Object) string {
	tagged, own := "", false
	for _, one := range objects {
		metadata, _ := one.Value["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		switch one.Value["kind"] {
		case "ConfigMap":
			config, _ := metadata["name"].(string)
			if rest, ok := strings.CutPrefix(config, "istio-sidecar-injector"); ok {
				own = own || cmp.Or(strings.TrimPrefix(rest, "-"), defaultRevision) == name
			}
		case "MutatingWebhookConfiguration":
			if revision, _ := labels[labelRevision].(string); labels[labelTag] == name && revision != "" {
				tagged = revision
			}
		}
	}
	if own && name != defaultRevision {
		return name
	}
	return cmp.Or(tagged, name)
}

// describeLostCompletion describes what an earlier policy had from the cluster and the current one lacks, or returns ""
// if it lacks no part.
func describeLostCompletion(before, now *v1alpha1.InjectionPolicy) string {
	if before.Spec.Istio == nil || now.Spec.Istio == nil {
		return ""
	}
	was, is := before.Spec.Istio, now.Spec.Istio
	hadWebhooks := hasOwnWebhooks(was, cmp.Or(was.Revision, defaultRevision))
	for _, one := range []struct {
		what string
		gone bool
	}{
		{"MutatingWebhookConfigurations of Istio",
			hadWebhooks && !hasOwnWebhooks(is, cmp.Or(is.Revision, defaultRevision))},
		{"ConfigMap with the mesh config of the revision", was.MeshConfig != "" && is.MeshConfig == ""},
		{"Deployment of istiod", was.Version != "" && is.Version == ""},
		{"nodes", was.KubernetesVersion != "" && is.KubernetesVersion == ""},
	} {
		if one.gone {
			return "the cluster lists no " + one.what + " any more"
		}
	}
	return ""
}
