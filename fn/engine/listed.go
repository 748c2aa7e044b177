// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/podmap"
)

// listedNamespace returns what the policy lists of a namespace; false where it does not list it.
func (pl *compiledPolicy) listedNamespace(name string) (v1alpha1.Namespace, bool) {
	all := pl.policy.Spec.Namespaces
	i := slices.IndexFunc(all, func(n v1alpha1.Namespace) bool { return n.Name == name })
	if i < 0 {
		return v1alpha1.Namespace{}, false
	}
	return all[i], true
}

// resolveServiceAccount returns the service account of a name for a pod of an object that lies in a namespace as it is written:
// that of the items, in this namespace or in the one that it will live in, or otherwise the one that the policy lists.
func (pl *compiledPolicy) resolveServiceAccount(s *cluster, name, written, resolved string) inject.Account {
	for _, namespace := range []string{written, resolved} {
		if a, ok := s.accounts[accountKey{namespace, name}]; ok {
			return a
		}
	}
	namespace, ok := pl.listedNamespace(resolved)
	for _, one := range namespace.ServiceAccounts {
		if one.Name == name {
			return inject.Account{Known: true, PullSecrets: one.ImagePullSecrets}
		}
	}
	// Where some are listed those are all that have pull secrets, and so it is in a policy that was completed from a cluster.
	return inject.Account{Known: ok && (len(namespace.ServiceAccounts) > 0 || pl.isCompleted())}
}

// isCompleted reports whether the policy was completed from a cluster.
func (pl *compiledPolicy) isCompleted() bool {
	return pl.policy.Metadata.Annotations[v1alpha1.CompletedAnnotation] != ""
}

// resolveLimitRanges returns the LimitRanges of the namespace that an object's manifest names, or otherwise of the one
// that it will live in, plus those that the policy lists and the items do not have.
func (pl *compiledPolicy) resolveLimitRanges(s *cluster, written, resolved string) []admission.LimitRange {
	own := s.limits[written]
	if len(own) == 0 {
		own = s.limits[resolved]
	}
	var out []admission.LimitRange
	for _, one := range own {
		out = append(out, one.LimitRange)
	}
	for _, one := range pl.limitRanges[resolved] {
		if !slices.ContainsFunc(own, func(l namedLimits) bool { return l.name == one.name }) {
			out = append(out, one.LimitRange)
		}
	}
	return out
}

// listedLimits reads the LimitRanges that a policy lists, by namespace. The policy stays as it is: others may read it at the same time.
func listedLimits(spec *v1alpha1.InjectionPolicySpec) map[string][]namedLimits {
	out := map[string][]namedLimits{}
	for _, namespace := range spec.Namespaces {
		for _, one := range namespace.LimitRanges {
			object := map[string]any{"spec": map[string]any{"limits": podmap.CopyValue(one.Limits)}}
			out[namespace.Name] = append(out[namespace.Name], namedLimits{one.Name, admission.NewLimitRange(object)})
		}
	}
	return out
}

// proxyConfigs returns the ProxyConfigs that the policy lists, each as the items have it where they do, and then the others of the items by
// name, as they are newer.
func (pl *compiledPolicy) proxyConfigs(s *cluster) []map[string]any {
	var out []map[string]any
	own := slices.Clone(s.proxyConfigs)
	for _, namespace := range pl.policy.Spec.Namespaces {
		for _, one := range namespace.ProxyConfigs {
			i := slices.IndexFunc(own, func(obj map[string]any) bool { return isNamed(obj, namespace.Name, one.Name) })
			if i >= 0 {
				out, own = append(out, own[i]), slices.Delete(own, i, i+1)
				continue
			}
			metadata := map[string]any{"name": one.Name, "namespace": namespace.Name}
			if one.Revision != "" {
				metadata["labels"] = map[string]any{mesh.RevisionLabel: one.Revision}
			}
			out = append(out, map[string]any{"apiVersion": "networking.istio.io/v1beta1", "kind": "ProxyConfig", "metadata": metadata, "spec": one.Spec})
		}
	}
	slices.SortStableFunc(own, func(a, b map[string]any) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return append(out, own...)
}

// labelsOf returns the labels of the namespaces that some objects are in, including the name label that the API
// server adds to each. The other labels of a namespace listed without any are unknown.
func (pl *compiledPolicy) labelsOf(objects []map[string]any, s *cluster) map[string]map[string]string {
	var out map[string]map[string]string
	for _, obj := range objects {
		metadata, _ := obj["metadata"].(map[string]any)
		name, _ := metadata["namespace"].(string)
		homes := pl.namespaceCandidates(name, s)
		if len(homes) != 1 || homes[0].Name != name || len(homes[0].Labels) == 0 {
			continue
		}
		if out == nil {
			out = map[string]map[string]string{}
		}
		out[name] = mergeStringMaps(map[string]string{corev1.LabelMetadataName: name}, homes[0].Labels)
	}
	return out
}

// isNamed reports whether an object has this namespace and name.
func isNamed(obj map[string]any, namespace, name string) bool {
	metadata, _ := obj["metadata"].(map[string]any)
	return metadata["namespace"] == namespace && nameOf(obj) == name
}

func nameOf(obj map[string]any) string {
	metadata, _ := obj["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}
