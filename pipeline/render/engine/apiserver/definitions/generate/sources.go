// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/prerig/prerig/pipeline/render/engine/apiserver/definitions"

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
	{
		"sail-operator", "https://github.com/istio-ecosystem/sail-operator", apache, []string{"1.30.3"},
		[]string{
			"chart/crds/sailoperator.io_istios.yaml", "chart/crds/sailoperator.io_istiocnis.yaml", "chart/crds/sailoperator.io_istiorevisions.yaml",
			"chart/crds/sailoperator.io_istiorevisiontags.yaml", "chart/crds/sailoperator.io_ztunnels.yaml",
		},
	},
	{"kiali", "https://github.com/kiali/kiali-operator", apache, []string{"v2.29.0"}, []string{"crd-docs/crd"}},
	{"trust-manager", "https://github.com/cert-manager/trust-manager", apache, []string{"v0.24.0"}, []string{"deploy/crds"}},
	{
		"openshift", "https://github.com/openshift/api", apache, []string{"release-4.18", "release-4.22"},
		[]string{
			"payload-manifests/crds", "console/v1/" + openShift, "helm/v1beta1/" + openShift, "imageregistry/v1/" + openShift, "machine/v1/" + openShift,
			"machine/v1beta1/" + openShift, "operator/v1/" + openShift, "route/v1/" + openShift, "samples/v1/" + openShift,
		},
	},
	{"operator-lifecycle-manager", "https://github.com/operator-framework/api", apache, []string{"v0.45.0"}, []string{"crds"}},
	{"openshift-logging", "https://github.com/openshift/cluster-logging-operator", apache, []string{"release-6.6"}, []string{bases}},
	{"openshift-nfd", "https://github.com/openshift/cluster-nfd-operator", apache, []string{"release-5.2"}, []string{bases}},
	{
		"open-cluster-management", "https://github.com/open-cluster-management-io/api", apache, []string{"v1.3.0"},
		[]string{"addon/v1alpha1", "addon/v1beta1", "cluster/v1", "cluster/v1alpha1", "cluster/v1beta1", "cluster/v1beta2", "operator/v1", "work/v1", "work/v1alpha1"},
	},
	{"open-cluster-management-policies", "https://github.com/open-cluster-management-io/governance-policy-propagator", apache, []string{"v0.19.0"}, []string{"deploy/crds"}},
	{"open-cluster-management-subscriptions", "https://github.com/open-cluster-management-io/multicloud-operators-subscription", apache, []string{"v0.16.0"}, []string{"deploy/common"}},
	{"argocd-operator", "https://github.com/argoproj-labs/argocd-operator", apache, []string{"v0.15.0", "v0.18.0"}, []string{bases}},
	{"rook", "https://github.com/rook/rook", apache, []string{"v1.18.0", "v1.20.6"}, []string{"deploy/examples/crds.yaml"}},
	{"velero", "github.com/vmware-tanzu/velero", apache, []string{"v1.18.3"}, []string{"config/crd/v1/bases"}},
	{"opentelemetry-operator", "https://github.com/open-telemetry/opentelemetry-operator", apache, []string{"v0.158.0"}, []string{bases}},
	{"tekton", "https://github.com/tektoncd/pipeline", apache, []string{"v1.15.0"}, []string{"config/300-crds"}},
	{"tekton-triggers", "https://github.com/tektoncd/triggers", apache, []string{"v0.37.0"}, []string{"config"}},
	{"knative-operator", "https://github.com/knative/operator", apache, []string{"v0.50.0"}, []string{bases}},
	{"crossplane", "https://github.com/crossplane/crossplane", apache, []string{"v1.20.0", "v2.3.4"}, []string{"cluster/crds"}},
	{"cluster-api", "https://github.com/kubernetes-sigs/cluster-api", apache, []string{"v1.14.0"}, []string{"core/" + bases, "controlplane/kubeadm/" + bases, "bootstrap/kubeadm/" + bases}},
	{"karpenter", "sigs.k8s.io/karpenter", apache, []string{"v1.15.0"}, []string{"pkg/apis/crds"}},
	{"karpenter-aws", "github.com/aws/karpenter-provider-aws", apache, []string{"v1.15.2"}, []string{"pkg/apis/crds"}},
	{"contour", "github.com/projectcontour/contour", apache, []string{"v1.33.8"}, []string{"examples/contour/01-crds.yaml"}},
	{"argo-workflows", "github.com/argoproj/argo-workflows/v4", apache, []string{"v4.0.5"}, []string{"manifests/base/crds/full"}},
	{"gatekeeper", "github.com/open-policy-agent/gatekeeper/v3", apache, []string{"v3.23.1"}, []string{"charts/gatekeeper/crds"}},
	{"fleet", "https://github.com/rancher/fleet", apache, []string{"v0.12.0", "v0.16.1"}, []string{"charts/fleet-crd/templates"}},
	{"strimzi", "https://github.com/strimzi/strimzi-kafka-operator", apache, []string{"0.48.0", "1.2.0"}, []string{"packaging/install/cluster-operator"}},
	{"keycloak", "https://github.com/keycloak/keycloak-k8s-resources", apache, []string{"26.0.0"}, []string{"kubernetes"}},
	{"crunchy-postgres", "https://github.com/CrunchyData/postgres-operator", apache, []string{"v5.8.9", "v6.0.3"}, []string{bases}},
	{"zalando-postgres", "https://github.com/zalando/postgres-operator", mit, []string{"v1.14.0", "v2.0.1"}, []string{"charts/postgres-operator/crds"}},
	{"onepassword", "https://github.com/1Password/onepassword-operator", mit, []string{"v1.12.0"}, []string{bases}},
	{"sriov", "https://github.com/k8snetworkplumbingwg/sriov-network-operator", apache, []string{"v1.6.0"}, []string{bases}},
	{"nmstate", "https://github.com/nmstate/kubernetes-nmstate", apache, []string{"v0.86.0"}, []string{"deploy/crds"}},
	{"longhorn", "https://github.com/longhorn/longhorn", apache, []string{"v1.10.0", "v1.12.1"}, []string{"deploy/longhorn.yaml"}},
	{"tempo-operator", "https://github.com/grafana/tempo-operator", apache, []string{"v0.22.0"}, []string{bases}},
	{"lvm-operator", "https://github.com/openshift/lvm-operator", apache, []string{"v4.20.0"}, []string{bases}},
	{"openshift-data-foundation", "https://github.com/red-hat-storage/ocs-operator", apache, []string{"release-4.20", "release-5.0"}, []string{bases}},
	{"quay-operator", "https://github.com/quay/quay-operator", apache, []string{"v3.7.10"}, []string{bases}},
	{"kueue", "sigs.k8s.io/kueue", apache, []string{"v0.19.2"}, []string{"config/components/crd/bases"}},
	{"victoriametrics", "https://github.com/VictoriaMetrics/operator", apache, []string{"v0.74.1"}, []string{"config/crd/overlay/crd.descriptionless.yaml"}},
	{"pipelines-as-code", "https://github.com/tektoncd/pipelines-as-code", apache, []string{"v0.50.0"}, []string{"config/300-repositories.yaml"}},
	{"toolhive", "https://github.com/stacklok/toolhive", apache, []string{"v0.44.0"}, []string{"deploy/charts/operator-crds/files/crds"}},
	{"argo-events", "https://github.com/argoproj/argo-events", apache, []string{"v1.9.11"}, []string{"manifests/base/crds"}},
	{"observability-operator", "https://github.com/rhobs/observability-operator", apache, []string{"v1.5.1"}, []string{"deploy/crds/common", "deploy/crds/kubernetes"}},
	{"gpu-operator", "https://github.com/NVIDIA/gpu-operator", apache, []string{"v26.7.0"}, []string{bases}},
	// The catalogue is for kinds and versions that no product above has. It is made by users from their clusters, of releases that it
	// does not name.
	{definitions.Catalogue, "https://github.com/datreeio/CRDs-catalog", mit, []string{"7b1e26ef9deea49293714d204c1a2270aab1178f"}, nil},
}

const (
	bases      = "config/crd/bases"
	openShift  = "zz_generated.crd-manifests"
	ciliumCRDs = "pkg/k8s/apis/cilium.io/client/crds"
)
