// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// valuesOfAll switch everything on that goes together, and everything off.
var valuesOfAll = map[string]string{
	"defaults": "{}",
	"on": `nats: {url: nats://nats.nats.svc:4222, replicas: 3}
replicas: 3
mesh: {enabled: true, namespaces: [istio-canary]}
secretNamespaces: [shop]
serviceMonitor: {enabled: true, tlsConfig: {insecureSkipVerify: true}}
ingress: {enabled: true, className: nginx, host: prerig.example.com, tlsSecretName: prerig-tls, annotations: {a: b}}
httpRoute: {enabled: true, hostnames: [prerig.example.com], parentRefs: [{name: gateway}]}
files: [{secret: {name: hooks}}]
image: {tag: "1", pullSecrets: [{name: registry}]}
nodeSelector: {a: b}
tolerations: [{key: a, operator: Exists}]
persistence: {storageClassName: fast}
config: {tls: {certificate: a, key: b}, admin: {tls: {certificate: a, key: b}}}
`,
	"off": "replicas: 0\nnetworkPolicy: {enabled: false}\nconfig: {admin: {listen: ''}}\nresources: {}\n",
	"null": "replicas: null\nresources: null\nfiles: null\nnodeSelector: null\ntolerations: null\nsecretNamespaces: null\n" +
		"image: {tag: null, digest: null, pullPolicy: null, pullSecrets: null}\nnetworkPolicy: {adminNamespaces: null, egressPorts: null}\nconfig: {admin: null, limits: null}\n",
	"artifacts": "artifacts: {enabled: true, namespaces: [shop]}\n",
}

// TestChartMakesValidObjects has each object of the chart be of its type, with all ports that others name, whatever values say.
func TestChartMakesValidObjects(t *testing.T) {
	for name, values := range valuesOfAll {
		all := install(t, values)
		for object := range all {
			switch kind, _, _ := strings.Cut(object, "/"); kind {
			case "ClusterRole":
				into[rbacv1.ClusterRole](t, all, object)
			case "Role":
				into[rbacv1.Role](t, all, object)
			case "RoleBinding":
				into[rbacv1.RoleBinding](t, all, object)
			case "Ingress":
				into[networkingv1.Ingress](t, all, object)
			case "PodDisruptionBudget":
				into[policyv1.PodDisruptionBudget](t, all, object)
			}
		}
		ports := portNumbers(into[appsv1.StatefulSet](t, all, "StatefulSet/prerig").Spec.Template.Spec.Containers[0])
		for _, port := range into[corev1.Service](t, all, "Service/prerig").Spec.Ports {
			if ports[port.TargetPort.String()] == 0 {
				t.Errorf("%s: the Service names the port %s, and the container has %v", name, port.TargetPort.String(), ports)
			}
		}
		if all["NetworkPolicy/prerig"] == nil {
			continue
		}
		for _, rule := range into[networkingv1.NetworkPolicy](t, all, "NetworkPolicy/prerig").Spec.Ingress {
			for _, port := range rule.Ports {
				if port.Port == nil || ports[port.Port.String()] == 0 {
					t.Errorf("%s: the NetworkPolicy names the port %v, and the container has %v", name, port.Port, ports)
				}
			}
		}
	}
}

// TestChartFollowsTheAddresses has the ports of the pod be those of the configuration, and Prometheus speak TLS where the page does.
func TestChartFollowsTheAddresses(t *testing.T) {
	all := install(t, "config: {listen: ':9090', admin: {listen: '0.0.0.0:9091', tls: {certificate: a, key: b}}}\nserviceMonitor: {enabled: true}\n")
	ports := portNumbers(into[appsv1.StatefulSet](t, all, "StatefulSet/prerig").Spec.Template.Spec.Containers[0])
	if !maps.Equal(ports, map[string]int32{"hooks": 9090, "admin": 9091, "health": 8083}) {
		t.Errorf("the ports are %v", ports)
	}
	endpoint := all["ServiceMonitor/prerig"].Object["spec"].(map[string]any)["endpoints"].([]any)[0].(map[string]any)
	if endpoint["scheme"] != "https" {
		t.Errorf("Prometheus asks by %v", endpoint)
	}
}

// TestChartRefusesWhatCannotWork has each of these be an error with a reason, and not an object that is not valid, allows too much or never works.
func TestChartRefusesWhatCannotWork(t *testing.T) {
	for values, want := range map[string]string{
		"config: null":                                                                 "missing property 'config'",
		"image: null":                                                                  "missing property 'image'",
		"nats: null":                                                                   "missing property 'nats'",
		"config: {listen: null}":                                                       "missing property 'listen'",
		"config: {state: null}":                                                        "missing property 'state'",
		"config: {listen: ':http'}":                                                    "must end with the number of a port",
		"nats: {url: 'nats://nats', port: null}":                                       "missing property 'port'",
		"persistence: {size: null}":                                                    "missing property 'size'",
		"mesh: {enabled: true, namespaces: null}":                                      "missing property 'namespaces'",
		"artifacts: {enabled: true, fluxNamespace: null}":                              "missing property 'fluxNamespace'",
		"config: {nats: {url: 'nats://nats'}}":                                         "say it there",
		"nats: {url: 'nats://nats'}\nconfig: {nats: {replicas: 3}}":                    "say it there",
		"artifacts: {enabled: true}\nnats: {url: 'nats://nats'}":                       "cannot be together with nats.url",
		"serviceMonitor: {enabled: true, secretName: null}":                            "missing property 'secretName'",
		"serviceMonitor: {enabled: true}\nconfig: {admin: {listen: ''}}":               "needs config.admin.listen",
		"serviceMonitor: {enabled: true}\nconfig: {admin: {listen: '127.0.0.1:8081'}}": "needs config.admin.listen",
		"serviceMonitor: {enabled: true}\nconfig: {admin: null}":                       "needs config.admin.listen",
		"namespaceOverride: other":                                                     "additional properties 'namespaceOverride' not allowed",
		"replicas: 2":                                                                  "nats",
		"replicas: 2\nnats: {url: 'nats://nats'}\nartifacts: {enabled: true, namespaces: [a]}": "cannot be together with nats.url",
	} {
		if text, err := template(t, "prerig", "prerig", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s\n%s", values, err, want, text)
		}
	}
	// A pod of a StatefulSet has the label controller-revision-hash: its name, a dash and up to ten characters, of 63 that a label may have.
	for release, valid := range map[string]bool{strings.Repeat("a", 52): true, strings.Repeat("a", 53): false, "a.b": false, "123": false, "r1": true} {
		if _, err := template(t, release, "prerig", "{}"); (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "at most 52 characters") {
			t.Errorf("a release named %s: %v", release, err)
		}
	}
}
