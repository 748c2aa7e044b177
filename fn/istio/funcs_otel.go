// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/istio/mesh"
)

// otelAnnotation is the prefix of annotations that set OpenTelemetry's resource attributes.
const otelAnnotation = "resource.opentelemetry.io/"

// otelResourceAttributes is the value of OTEL_RESOURCE_ATTRIBUTES, or "" unless an extension provider asks for
// OpenTelemetry's semantic conventions (source: the OpenTelemetry conventions for service attributes in Kubernetes, which
// Istio 1.30 and later follow). The pod's name is known to the kubelet only, so it stands there as $(POD_NAME).
func otelResourceAttributes(mc *mesh.MeshConfig, annotations, labels map[string]string, namespace string, containers []corev1.Container) string {
	if !wantsOTelAttributes(mc) {
		return ""
	}
	if namespace == "" {
		namespace = "default"
	}
	var apps []corev1.Container
	for _, c := range containers {
		if c.Name != ProxyContainer {
			apps = append(apps, c)
		}
	}
	var out []string
	add := func(attribute, value string) {
		if v := annotations[otelAnnotation+attribute]; v != "" {
			value = v
		}
		if value != "" {
			out = append(out, attribute+"="+value)
		}
	}
	version, instance := labels["app.kubernetes.io/version"], namespace+".$(POD_NAME)"
	if len(apps) == 1 {
		if version == "" {
			version = imageVersion(apps[0].Image)
		}
		instance += "." + apps[0].Name
	}
	add("service.namespace", namespace)
	add("service.version", version)
	add("service.instance.id", instance)
	return strings.Join(out, ",")
}

func wantsOTelAttributes(mc *mesh.MeshConfig) bool {
	for _, p := range mc.GetExtensionProviders() {
		if p.GetOpentelemetry().GetServiceAttributeEnrichment().String() == "OTEL_SEMANTIC_CONVENTIONS" {
			return true
		}
	}
	return false
}

// imageVersion is the tag of an image, else its digest.
func imageVersion(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[i+1:]
	}
	return digest
}
