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

// otelResourceAttributes returns the value of OTEL_RESOURCE_ATTRIBUTES, or "" unless an extension provider asks for
// OpenTelemetry's semantic conventions (source: otelResourceAttributes in pkg/kube/inject/template.go of Istio
// 1.30). Only the kubelet knows the pod's name, so it appears as $(POD_NAME). All the pod's containers count,
// including a proxy of its own.
func otelResourceAttributes(mc *mesh.MeshConfig, annotations, labels map[string]string, namespace string, containers []corev1.Container) string {
	if !wantsOTelAttributes(mc) {
		return ""
	}
	version, instance := labels["app.kubernetes.io/version"], ""
	if len(containers) == 1 && version == "" {
		version = imageVersion(containers[0].Image)
	}
	if len(containers) > 0 {
		instance = namespace + ".$(POD_NAME)." + containers[0].Name
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

// imageVersion is the tag and the digest of an image, as TAG@DIGEST, or the one that it has.
func imageVersion(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	i := strings.LastIndex(name, ":")
	if i <= strings.LastIndex(name, "/") {
		return digest
	}
	if tag := name[i+1:]; digest == "" || tag == "" {
		return tag + digest
	}
	return name[i+1:] + "@" + digest
}
