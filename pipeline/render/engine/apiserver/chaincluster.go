// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	defaults "github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// newChain reads what the plugins of an API server read of the cluster. An object that cannot be read is left out: the
// schemas report it.
func newChain(known []gate.Object, server defaults.Server, o gate.Options) *chain.Cluster {
	c := &chain.Cluster{
		Server: server, IsComplete: o.IsComplete, NodeSelectors: o.NodeSelectors, Ignored: o.Ignored,
		LimitRanges: map[string][]chain.LimitRange{}, Accounts: map[string]*corev1.ServiceAccount{},
		Priorities: map[string]*chain.PriorityClass{}, Runtimes: map[string]*chain.RuntimeClass{},
		Namespaces: map[string]*corev1.Namespace{}, Quotas: map[string][]*corev1.ResourceQuota{},
	}
	limits, quotas := map[[2]string]chain.LimitRange{}, map[[2]string]*corev1.ResourceQuota{}
	for _, object := range known {
		ref := object.Ref()
		if isEncrypted(object.Value) || isLocal(object.Value) {
			continue
		}
		key := [2]string{cmp.Or(ref.Namespace, "default"), ref.Name}
		switch ref.APIVersion + "/" + ref.Kind {
		case "v1/Namespace":
			if ns, err := namespaceOf(object.Value); err == nil {
				c.Namespaces[ref.Name] = ns
			}
		case "v1/ServiceAccount":
			put(c.Accounts, key[0]+"/"+key[1], object.Value)
		case "v1/LimitRange":
			if one, err := chain.NewLimitRange(object.Value); err == nil {
				limits[key] = one
			}
		case "v1/ResourceQuota":
			put(quotas, key, object.Value)
		case "scheduling.k8s.io/v1/PriorityClass":
			put(c.Priorities, ref.Name, object.Value)
		case "node.k8s.io/v1/RuntimeClass":
			put(c.Runtimes, ref.Name, object.Value)
		}
	}
	for _, key := range sortedNames(limits) {
		c.LimitRanges[key[0]] = append(c.LimitRanges[key[0]], limits[key])
	}
	for _, key := range sortedNames(quotas) {
		c.Quotas[key[0]] = append(c.Quotas[key[0]], quotas[key])
	}
	return c
}

// put adds an object in its type, unless it cannot be read.
func put[K comparable, V any](list map[K]*V, key K, object map[string]any) {
	var typed V
	if request.Decode(object, &typed) == nil {
		list[key] = &typed
	}
}
