// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

const (
	apache = "Apache-2.0"
	mit    = "MIT"
)

// sources are the products: those of Istio and of GitOps, and others whose kinds many repositories contain. Their licences permit the
// use; VolSync and tuppr (AGPL-3.0) are left out for theirs. Releases of modules are the last of a minor, where the proxy has it.
var sources = []source{
	{"istio", "istio.io/api", apache, []string{"v1.24.2", "v1.30.8", "v1.31.4", "v1.32.0"}, []string{"kubernetes/customresourcedefinitions.gen.yaml"}},
	{
		"gateway-api", "sigs.k8s.io/gateway-api", apache, []string{"v1.2.1", "v1.3.0", "v1.4.1", "v1.5.1", "v1.6.3", "v1.7.0"},
		[]string{"config/crd/standard", "config/crd/experimental"},
	},
	{"flux-source", "github.com/fluxcd/source-controller", apache, []string{"v1.8.5", "v1.9.6", "v1.10.1"}, []string{bases}},
	{"flux-kustomize", "github.com/fluxcd/kustomize-controller", apache, []string{"v1.7.3", "v1.9.6", "v1.10.1"}, []string{bases}},
	{"flux-helm", "https://github.com/fluxcd/helm-controller", apache, []string{"v1.3.0", "v1.4.5", "v1.5.5", "v1.6.3"}, []string{bases}},
	{"flux-notification", "https://github.com/fluxcd/notification-controller", apache, []string{"v1.7.5", "v1.8.4", "v1.9.3"}, []string{bases}},
	{"flux-image-reflector", "https://github.com/fluxcd/image-reflector-controller", apache, []string{"v1.0.0", "v1.1.2", "v1.2.0"}, []string{bases}},
	{"flux-image-automation", "https://github.com/fluxcd/image-automation-controller", apache, []string{"v1.0.0", "v1.1.4", "v1.2.1"}, []string{bases}},
	{"flux-source-watcher", "https://github.com/fluxcd/source-watcher", apache, []string{"v2.1.1", "v2.2.1"}, []string{bases}},
	{"flagger", "github.com/fluxcd/flagger", apache, []string{"v1.36.1"}, []string{"artifacts/flagger/crd.yaml"}},
	{"argo-cd", "github.com/argoproj/argo-cd/v3", apache, []string{"v3.5.7", "v3.6.1"}, []string{"manifests/crds"}},
	{"argo-rollouts", "github.com/argoproj/argo-rollouts", apache, []string{"v1.8.5", "v1.9.3", "v1.10.2"}, []string{"manifests/crds"}},
	{"cert-manager", "github.com/cert-manager/cert-manager", apache, []string{"v1.21.2"}, []string{"deploy/crds"}},
	{"prometheus-operator", "github.com/prometheus-operator/prometheus-operator", apache, []string{"v0.85.0"}, []string{"example/prometheus-operator-crd"}},
	{"grafana-operator", "https://github.com/grafana/grafana-operator", apache, []string{"v5.20.0", "v5.22.2", "v5.24.0"}, []string{bases}},
	{"external-secrets", "github.com/external-secrets/external-secrets", apache, []string{"v0.16.2", "v1.3.2"}, []string{"config/crds/bases"}},
	{"sealed-secrets", "github.com/bitnami-labs/sealed-secrets", apache, []string{"v0.40.0"}, []string{"helm/sealed-secrets/crds"}},
	{"kyverno", "github.com/kyverno/kyverno", apache, []string{"v1.13.4", "v1.19.1"}, []string{"config/crds/kyverno", "config/crds/policies.kyverno.io"}},
	{"cilium", "github.com/cilium/cilium", apache, []string{"v1.15.19", "v1.20.2"}, []string{ciliumCRDs + "/v2", ciliumCRDs + "/v2alpha1"}},
	{"metallb", "go.universe.tf/metallb", apache, []string{"v0.15.2", "v0.16.2"}, []string{bases}},
	{
		"envoy-gateway", "github.com/envoyproxy/gateway", apache, []string{"v1.5.0", "v1.7.0", "v1.8.0", "v1.9.1"},
		[]string{"charts/gateway-helm/charts/crds/crds/generated", "charts/gateway-helm/crds/generated"},
	},
	{"traefik", "github.com/traefik/traefik/v3", mit, []string{"v3.6.12", "v3.7.13"}, []string{"docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"}},
	{"network-attachments", "https://github.com/k8snetworkplumbingwg/network-attachment-definition-client", apache, []string{"v1.7.7"}, []string{"artifacts/networks-crd.yaml"}},
	{"external-dns", "sigs.k8s.io/external-dns", apache, []string{"v0.23.0"}, []string{"config/crd/standard"}},
	{"cloudnative-pg", "https://github.com/cloudnative-pg/cloudnative-pg", apache, []string{"v1.27.4", "v1.28.4", "v1.29.2", "v1.30.0"}, []string{bases}},
	{"cloudnative-pg-barman", "https://github.com/cloudnative-pg/plugin-barman-cloud", apache, []string{"v0.11.0", "v0.14.0"}, []string{bases}},
	{"dragonfly", "https://github.com/dragonflydb/dragonfly-operator", apache, []string{"v1.4.0", "v1.6.1"}, []string{bases}},
	{"volume-snapshots", "github.com/kubernetes-csi/external-snapshotter/client/v8", apache, []string{"v8.7.0"}, []string{"config/crd"}},
	{"keda", "github.com/kedacore/keda/v2", apache, []string{"v2.16.1", "v2.21.0"}, []string{bases}},
	{"vertical-pod-autoscaler", "k8s.io/autoscaler/vertical-pod-autoscaler", apache, []string{"v1.8.1"}, []string{"deploy/vpa-v1-crd-gen.yaml"}},
	{"node-feature-discovery", "https://github.com/kubernetes-sigs/node-feature-discovery", apache, []string{"v0.18.3", "v0.19.0"}, []string{"deployment/base/nfd-crds"}},
	{"silence-operator", "https://github.com/giantswarm/silence-operator", apache, []string{"v0.21.0"}, []string{bases}},
	{"system-upgrade-controller", "https://github.com/rancher/system-upgrade-controller", apache, []string{"v0.20.1"}, []string{"pkg/crds/yaml/generated"}},
}

const (
	bases      = "config/crd/bases"
	ciliumCRDs = "pkg/k8s/apis/cilium.io/client/crds"
)
