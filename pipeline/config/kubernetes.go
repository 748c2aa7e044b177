// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// Kubernetes is about a cluster that pipelines are objects of.
type Kubernetes struct {
	// Pipelines reads RenderPipelines and InjectionPolicies that are objects of the cluster, and the secrets of their
	// namespaces, and writes their status.
	Pipelines bool `mapstructure:"pipelines"`
	// Kubeconfig is a file with the connection to the API server. Without it, the daemon connects to the cluster
	// that it runs in, with its ServiceAccount.
	Kubeconfig string `mapstructure:"kubeconfig"`
	// Namespaces that are looked at; none means all, which cannot be together with other places that pipelines are read
	// from.
	Namespaces []string `mapstructure:"namespaces"`
	// Mesh completes policies with from: Cluster: it reads the namespaces, nodes and webhooks of the cluster, and
	// the control planes in MeshNamespaces.
	Mesh bool `mapstructure:"mesh"`
	// MeshNamespaces have control planes of Istio.
	MeshNamespaces []string `mapstructure:"mesh_namespaces"`
}

// ParsedTenants returns the permissions of the authors of objects as the only tenant of the cluster, or none if it
// is not bound to namespaces or tenants define them.
func (k Kubernetes) ParsedTenants() ([]tenant.Tenant, error) {
	if len(k.Namespaces) == 0 {
		return nil, nil
	}
	one, err := tenant.New(".", k.Namespaces, nil, nil, nil)
	return []tenant.Tenant{one}, err
}

// clusterName is what the cluster is called beside other places.
const clusterName = "kubernetes"

// ClusterName is what the cluster is called beside directories and repositories; empty where it is alone.
func (c *Config) ClusterName() string {
	if c.Pipelines == "" && len(c.Repositories()) == 0 {
		return ""
	}
	return clusterName
}

// validatePlace reports errors of the cluster's configuration; namespaces are those that other places already
// have, by their keys.
func (k Kubernetes) validatePlace(add addError, names map[string]bool, namespaces map[string]string) {
	if !k.Pipelines {
		return
	}
	if names[clusterName] {
		add("pipelines_git", "must have another name than %s, which is the cluster", clusterName)
	}
	if len(k.Namespaces) == 0 {
		add("kubernetes.namespaces", "must be given where pipelines are read from several places")
	}
	for _, namespace := range k.Namespaces {
		if other := namespaces[namespace]; other != "" {
			add("kubernetes.namespaces", "%s is of %s already: a pipeline has one place", namespace, other)
		}
	}
}

// validateKeys reports keys of the cluster without effect.
func (k Kubernetes) validateKeys(add addError) {
	if !k.Pipelines && (k.Kubeconfig != "" || len(k.Namespaces) > 0) {
		add("kubernetes.pipelines", "must be true where another key of kubernetes is given")
	}
	if k.Mesh && !k.Pipelines {
		add("kubernetes.mesh", "needs kubernetes.pipelines: the cluster of the pipelines is the one that is read")
	}
	if k.Mesh && len(k.MeshNamespaces) == 0 {
		add("kubernetes.mesh_namespaces", "must name the namespace of a control plane, such as istio-system")
	}
	for i, namespace := range k.MeshNamespaces {
		if !nameRule.MatchString(namespace) {
			add(fmt.Sprintf("kubernetes.mesh_namespaces[%d]", i), "must be the name of a namespace, found %q",
				namespace)
		}
	}
	seen := map[string]bool{}
	for i, namespace := range k.Namespaces {
		if !nameRule.MatchString(namespace) || seen[namespace] {
			add(fmt.Sprintf("kubernetes.namespaces[%d]", i), "must be the name of a namespace, once, found %q",
				namespace)
		}
		seen[namespace] = true
	}
}
