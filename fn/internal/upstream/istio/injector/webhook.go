// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	networking "istio.io/api/networking/v1beta1"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/schema/gvk"
	"istio.io/istio/pkg/kube/inject"
	"istio.io/istio/pkg/util/protomarshal"
)

// Installation is what an istiod reads from its cluster.
type Installation struct {
	// Config and Values are data.config and data.values of the ConfigMap istio-sidecar-injector.
	Config string `json:"config"`
	Values string `json:"values"`
	// Mesh is data.mesh of the ConfigMap istio.
	Mesh string `json:"mesh"`
	// Revision is that of the control plane.
	Revision string `json:"revision"`
	// Path is the path of the webhook's URL, such as /inject/cluster/c1/net/n1.
	Path string `json:"path"`
	// Clusters are the names of the clusters that istiod knows: that of its variable CLUSTER_ID, and the remote ones.
	Clusters []string `json:"clusters"`
	// Kubelets are the versions of the nodes' kubelets, such as v1.34.1.
	Kubelets []string `json:"kubelets"`
	// Namespaces are the cluster's namespaces.
	Namespaces []corev1.Namespace `json:"namespaces"`
	// ProxyConfigs are the resources of this kind.
	ProxyConfigs []ProxyConfig `json:"proxyConfigs"`
}

// ProxyConfig is a resource of networking.istio.io/v1beta1.
type ProxyConfig struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Spec as YAML or JSON.
	Spec string `json:"spec"`
}

// webhook is the handler of an istiod, and the path at which the API server calls it.
type webhook struct {
	handler http.Handler
	path    string
}

// newWebhook sets the webhook up as istiod does when it starts.
func newWebhook(i Installation, stop chan struct{}) (*webhook, error) {
	meshConfig, err := mesh.ApplyMeshConfigDefaults(i.Mesh)
	if err != nil {
		return nil, fmt.Errorf("reading the mesh config: %w", err)
	}
	proxyConfigs, err := storeOf(i.ProxyConfigs)
	if err != nil {
		return nil, err
	}
	watcher, remove, err := watchFiles(i)
	if err != nil {
		return nil, err
	}
	defer remove()
	mux := http.NewServeMux()
	parameters := inject.WebhookParameters{Watcher: watcher, Env: environmentOf(meshConfig, proxyConfigs), Mux: mux, Revision: i.Revision}
	if err := start(parameters, i, stop); err != nil {
		return nil, err
	}
	return &webhook{handler: mux, path: i.Path}, nil
}

// watchFiles writes the injector's configuration to files, from which istiod reads it where they are mounted.
func watchFiles(i Installation) (inject.Watcher, func(), error) {
	dir, err := os.MkdirTemp("", "injector-")
	if err != nil {
		return nil, nil, fmt.Errorf("writing the injector's configuration: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) }
	config, values := filepath.Join(dir, "config"), filepath.Join(dir, "values")
	for file, text := range map[string]string{config: i.Config, values: i.Values} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			remove()
			return nil, nil, fmt.Errorf("writing the injector's configuration: %w", err)
		}
	}
	w, err := inject.NewFileWatcher(config, values)
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("reading the injector's configuration: %w", err)
	}
	return w, remove, nil
}

func storeOf(resources []ProxyConfig) (model.ConfigStore, error) {
	store := model.NewFakeStore()
	for _, r := range resources {
		spec := &networking.ProxyConfig{}
		if err := protomarshal.ApplyYAML(r.Spec, spec); err != nil {
			return nil, fmt.Errorf("reading ProxyConfig %s/%s: %w", r.Namespace, r.Name, err)
		}
		if _, err := store.Create(config.Config{
			Meta: config.Meta{GroupVersionKind: gvk.ProxyConfig, Name: r.Name, Namespace: r.Namespace},
			Spec: spec,
		}); err != nil {
			return nil, fmt.Errorf("storing ProxyConfig %s/%s: %w", r.Namespace, r.Name, err)
		}
	}
	return store, nil
}

// objectsOf returns the nodes and namespaces of the cluster.
func objectsOf(i Installation) []runtime.Object {
	var out []runtime.Object
	for n, version := range i.Kubelets {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", n)}}
		node.Status.NodeInfo.KubeletVersion = version
		out = append(out, node)
	}
	for n := range i.Namespaces {
		out = append(out, &i.Namespaces[n])
	}
	return out
}
