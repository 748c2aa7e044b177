// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
)

// sound are objects that every cluster accepts. NAME is the object's name, POD the spec of a pod, APP a label, PORT a port and SMALL a small
// number.
var sound = map[string]string{
	"Pod":                            `{apiVersion: v1, kind: Pod, metadata: {name: NAME, namespace: default, labels: {app: APP}}, spec: POD}`,
	"Deployment":                     `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME, namespace: default, labels: {app: APP}}, spec: {replicas: SMALL, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: POD}}}`,
	"ReplicaSet":                     `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: NAME, namespace: default}, spec: {replicas: SMALL, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: POD}}}`,
	"StatefulSet":                    `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: NAME, namespace: default}, spec: {replicas: SMALL, serviceName: web, podManagementPolicy: Parallel, updateStrategy: {type: RollingUpdate}, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: POD}, volumeClaimTemplates: [{metadata: {name: store}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: SMALLGi}}}}]}}`,
	"DaemonSet":                      `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: NAME, namespace: default}, spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: POD}}}`,
	"Job":                            `{apiVersion: batch/v1, kind: Job, metadata: {name: NAME, namespace: default}, spec: {backoffLimit: SMALL, completions: SMALL, parallelism: 1, template: {metadata: {labels: {app: APP}}, spec: POD}}}`,
	"CronJob":                        `{apiVersion: batch/v1, kind: CronJob, metadata: {name: NAME, namespace: default}, spec: {schedule: "*/SMALL * * * *", concurrencyPolicy: Forbid, jobTemplate: {spec: {template: {metadata: {labels: {app: APP}}, spec: POD}}}}}`,
	"Service":                        `{apiVersion: v1, kind: Service, metadata: {name: NAME, namespace: default}, spec: {type: ClusterIP, selector: {app: APP}, ports: [{name: http, port: PORT, targetPort: http}]}}`,
	"ConfigMap":                      `{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: default, labels: {app: APP}}, data: {a.txt: b}, binaryData: {b.bin: YQ==}}`,
	"Secret":                         `{apiVersion: v1, kind: Secret, metadata: {name: NAME, namespace: default}, type: Opaque, data: {a: YQ==}}`,
	"ServiceAccount":                 `{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: default, labels: {app: APP}}}`,
	"PersistentVolumeClaim":          `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: NAME, namespace: default}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: SMALLGi}}}}`,
	"PersistentVolume":               `{apiVersion: v1, kind: PersistentVolume, metadata: {name: NAME}, spec: {capacity: {storage: SMALLGi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, nfs: {server: nfs.example.com, path: /a}}}`,
	"ResourceQuota":                  `{apiVersion: v1, kind: ResourceQuota, metadata: {name: NAME, namespace: default}, spec: {hard: {pods: SMALL, requests.cpu: SMALL}}}`,
	"LimitRange":                     `{apiVersion: v1, kind: LimitRange, metadata: {name: NAME, namespace: default}, spec: {limits: [{type: Container, max: {cpu: "2"}, min: {cpu: 10m}, default: {cpu: "1"}, defaultRequest: {cpu: 100m}}]}}`,
	"Namespace":                      `{apiVersion: v1, kind: Namespace, metadata: {name: NAME, labels: {app: APP}}}`,
	"Ingress":                        `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: NAME, namespace: default}, spec: {ingressClassName: a, tls: [{hosts: [APP.example.com], secretName: a}], rules: [{host: APP.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: PORT}}}}]}}]}}`,
	"NetworkPolicy":                  `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: NAME, namespace: default}, spec: {podSelector: {matchLabels: {app: APP}}, policyTypes: [Ingress], ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}], ports: [{port: PORT, protocol: TCP}]}]}}`,
	"HorizontalPodAutoscaler":        `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: NAME, namespace: default}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 1SMALL, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}`,
	"PodDisruptionBudget":            `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: NAME, namespace: default}, spec: {minAvailable: SMALL, selector: {matchLabels: {app: APP}}}}`,
	"Role":                           `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: NAME, namespace: default}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]}`,
	"ClusterRole":                    `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {nonResourceURLs: [/healthz], verbs: [get]}]}`,
	"RoleBinding":                    `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: NAME, namespace: default}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: a, namespace: b}]}`,
	"ClusterRoleBinding":             `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NAME}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: Group, name: a, apiGroup: rbac.authorization.k8s.io}]}`,
	"StorageClass":                   `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAME}, provisioner: example.com/APP, reclaimPolicy: Delete, volumeBindingMode: Immediate}`,
	"PriorityClass":                  `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NAME}, value: PORT}`,
	"CustomResourceDefinition":       `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: doors.APP.example.com}, spec: {group: APP.example.com, scope: Namespaced, names: {plural: doors, singular: door, kind: Door, listKind: DoorList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]}}`,
	"ValidatingWebhookConfiguration": `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NAME}, webhooks: [{name: APP.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, timeoutSeconds: SMALL, clientConfig: {url: "https://example.com/a"}, rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [doors]}]}]}`,
}

func allKinds() []string { return slices.Sorted(maps.Keys(sound)) }

var templated = []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"}

// allMistakes are the kinds of mistakes.
func allMistakes() []mistake {
	return slices.Concat(metadataMistakes, podMistakes, workloadMistakes, coreMistakes, otherMistakes)
}

var metadataMistakes = []mistake{
	{"name with capitals", "metadata.name", "Upper_Case", []string{"Pod", "Deployment", "Service", "ConfigMap", "Secret", "Ingress", "CronJob", "PersistentVolumeClaim", "StorageClass"}},
	{"name is a boolean", "metadata.name", "false", nil},
	{"no name", "metadata.name", "-", nil},
	{"label with a blank", "metadata.labels.team", "a b", nil},
	{"label is a number", "metadata.labels.team", "7", nil},
	{"label key with a blank", "metadata.labels", `{"a b": c}`, nil},
	{"annotation is a boolean", "metadata.annotations.x", "true", nil},
	{"annotation key with two slashes", "metadata.annotations", `{"a/b/c": d}`, nil},
	{"finalizer without a domain", "metadata.finalizers", `["a b"]`, []string{"Pod", "ConfigMap", "Service", "Deployment"}},
	{"unknown field", "speck", "{}", nil},
	{"unknown field in metadata", "metadata.lables", "{}", nil},
}

var otherMistakes = []mistake{
	{"no rule and no backend", "spec.rules", "-", []string{"Ingress"}},
	{"relative path", "spec.rules.0.http.paths.0.path", "a", []string{"Ingress"}},
	{"no path type", "spec.rules.0.http.paths.0.pathType", "-", []string{"Ingress"}},
	{"host with a blank", "spec.rules.0.host", "a b", []string{"Ingress"}},
	{"host is an address", "spec.rules.0.host", "10.0.0.1", []string{"Ingress"}},
	{"two names of the port", "spec.rules.0.http.paths.0.backend.service.port", "{number: 80, name: http}", []string{"Ingress"}},
	{"no backend", "spec.rules.0.http.paths.0.backend", "{}", []string{"Ingress"}},
	{"TLS host with a blank", "spec.tls.0.hosts.0", "a_b", []string{"Ingress"}},
	{"CIDR without a length", "spec.ingress.0.from.0.ipBlock.cidr", "10.0.0.0", []string{"NetworkPolicy"}},
	{"exception outside", "spec.ingress.0.from.0.ipBlock.except.0", "192.168.0.0/16", []string{"NetworkPolicy"}},
	{"peer with two kinds", "spec.ingress.0.from.0.podSelector", "{}", []string{"NetworkPolicy"}},
	{"unknown protocol", "spec.ingress.0.ports.0.protocol", "ICMP", []string{"NetworkPolicy"}},
	{"unknown policy type", "spec.policyTypes.0", "Inbound", []string{"NetworkPolicy"}},
	{"last port before the first", "spec.ingress.0.ports.0", "{port: 80, endPort: 70}", []string{"NetworkPolicy"}},
	{"minimum above the maximum", "spec.minReplicas", "50", []string{"HorizontalPodAutoscaler"}},
	{"no target", "spec.scaleTargetRef", "{kind: Deployment}", []string{"HorizontalPodAutoscaler"}},
	{"no maximum", "spec.maxReplicas", "0", []string{"HorizontalPodAutoscaler"}},
	{"metric of another type", "spec.metrics.0.type", "Pods", []string{"HorizontalPodAutoscaler"}},
	{"metric without a target", "spec.metrics.0.resource.target", "{type: Utilization}", []string{"HorizontalPodAutoscaler"}},
	{"minimum and maximum", "spec.maxUnavailable", "1", []string{"PodDisruptionBudget"}},
	{"no percentage", "spec.minAvailable", "half", []string{"PodDisruptionBudget"}},
	{"negative minimum", "spec.minAvailable", "-1", []string{"PodDisruptionBudget"}},
	{"no verbs", "rules.0.verbs", "[]", []string{"Role", "ClusterRole"}},
	{"no groups", "rules.0.apiGroups", "-", []string{"Role", "ClusterRole"}},
	{"no resources", "rules.0.resources", "-", []string{"Role", "ClusterRole"}},
	{"URL in a namespace", "rules.0", "{nonResourceURLs: [/a], verbs: [get]}", []string{"Role"}},
	{"role of another group", "roleRef.apiGroup", "rbac", []string{"RoleBinding", "ClusterRoleBinding"}},
	{"role of another kind", "roleRef.kind", "Rolle", []string{"RoleBinding", "ClusterRoleBinding"}},
	{"role without a name", "roleRef.name", "''", []string{"RoleBinding", "ClusterRoleBinding"}},
	{"account without a namespace", "subjects.0", "{kind: ServiceAccount, name: a}", []string{"RoleBinding", "ClusterRoleBinding"}},
	{"subject of another kind", "subjects.0.kind", "Robot", []string{"RoleBinding", "ClusterRoleBinding"}},
	{"no provisioner", "provisioner", "-", []string{"StorageClass"}},
	{"unknown reclaim policy", "reclaimPolicy", "Keep", []string{"StorageClass"}},
	{"unknown binding mode", "volumeBindingMode", "Later", []string{"StorageClass"}},
	{"priority of the system", "value", "2000000000", []string{"PriorityClass"}},
	{"unknown preemption", "preemptionPolicy", "Sometimes", []string{"PriorityClass"}},
	{"name that does not fit", "metadata.name", "door.example.com", []string{"CustomResourceDefinition"}},
	{"no schema", "spec.versions.0.schema", "-", []string{"CustomResourceDefinition"}},
	{"no stored version", "spec.versions.0.storage", "false", []string{"CustomResourceDefinition"}},
	{"unknown scope", "spec.scope", "Global", []string{"CustomResourceDefinition"}},
	{"kind in lower case", "spec.names.listKind", "door list", []string{"CustomResourceDefinition"}},
	{"schema without a type", "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size", "{minimum: 1}", []string{"CustomResourceDefinition"}},
	{"no side effects", "webhooks.0.sideEffects", "-", []string{"ValidatingWebhookConfiguration"}},
	{"unencrypted URL", "webhooks.0.clientConfig.url", `"http://example.com"`, []string{"ValidatingWebhookConfiguration"}},
	{"URL and service", "webhooks.0.clientConfig.service", "{name: a, namespace: b}", []string{"ValidatingWebhookConfiguration"}},
	{"name without a domain", "webhooks.0.name", "a", []string{"ValidatingWebhookConfiguration"}},
	{"long timeout", "webhooks.0.timeoutSeconds", "60", []string{"ValidatingWebhookConfiguration"}},
	{"unknown review", "webhooks.0.admissionReviewVersions", "[v7]", []string{"ValidatingWebhookConfiguration"}},
	{"unknown operation", "webhooks.0.rules.0.operations", "[MAKE]", []string{"ValidatingWebhookConfiguration"}},
}
