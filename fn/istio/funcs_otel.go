// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/istio/mesh"
)

// otelAnnotation is the prefix of annotations that set OpenTelemetry's resource attributes.
const otelAnnotation = "resource.opentelemetry.io/"

// otelResourceAttributes is the value of OTEL_RESOURCE_ATTRIBUTES, or "" unless an extension provider asks for
// OpenTelemetry's semantic conventions (source: the OpenTelemetry conventions for service attributes in Kubernetes, which
// Istio 1.30 and later follow). The pod's name and uid are known to the kubelet only, so they stand there as $(POD_NAME)
// and $(POD_UID). Templates that do not give the containers identify the instance by the uid.
func otelResourceAttributes(mc *mesh.MeshConfig, annotations, labels map[string]string, namespace string, containers ...[]corev1.Container) string {
	if !wantsOTelAttributes(mc) {
		return ""
	}
	version, instance := labels["app.kubernetes.io/version"], "$(POD_UID)"
	if len(containers) > 0 {
		var apps []corev1.Container
		for _, c := range slices.Concat(containers...) {
			if c.Name != ProxyContainer {
				apps = append(apps, c)
			}
		}
		instance = "$(POD_NAME)"
		if namespace != "" {
			instance = namespace + "." + instance
		}
		if len(apps) == 1 {
			instance += "." + apps[0].Name
			if version == "" {
				version = imageVersion(apps[0].Image)
			}
		}
	}
	var out []string
	for _, attribute := range []struct{ name, value string }{
		{"service.namespace", namespace}, {"service.version", version}, {"service.instance.id", instance},
	} {
		if v := annotations[otelAnnotation+attribute.name]; v != "" {
			attribute.value = v
		}
		if attribute.value != "" {
			out = append(out, attribute.name+"="+attribute.value)
		}
	}
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
