// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
)

// newerFields are the fields that Kubernetes' containers got after version 1.20, by the minor that had them first (source:
// core/v1/types.go of k8s.io/api v0.20 to v0.37).
var newerFields = map[int][][]string{
	21: splitPaths("livenessProbe.terminationGracePeriodSeconds", "readinessProbe.terminationGracePeriodSeconds", "startupProbe.terminationGracePeriodSeconds"),
	22: splitPaths("securityContext.windowsOptions.hostProcess"),
	23: splitPaths("livenessProbe.grpc", "readinessProbe.grpc", "startupProbe.grpc"),
	26: splitPaths("resources.claims"),
	27: splitPaths("resizePolicy"),
	28: splitPaths("restartPolicy"),
	29: splitPaths("lifecycle.postStart.sleep", "lifecycle.preStop.sleep"),
	30: splitPaths("securityContext.appArmorProfile", "volumeMounts.recursiveReadOnly"),
	31: splitPaths("resources.claims.request"),
	33: splitPaths("lifecycle.stopSignal"),
	34: splitPaths("env.valueFrom.fileKeyRef", "restartPolicyRules"),
	37: splitPaths("lifecycle.postStart.httpGet.protocol", "lifecycle.preStop.httpGet.protocol", "livenessProbe.grpc.mode", "livenessProbe.httpGet.protocol",
		"readinessProbe.grpc.mode", "readinessProbe.httpGet.protocol", "startupProbe.grpc.mode", "startupProbe.httpGet.protocol", "volumeMounts.bindMountOptions"),
}

// splitPaths returns the parts of fields' paths.
func splitPaths(fields ...string) [][]string {
	out := make([][]string, len(fields))
	for i, field := range fields {
		out[i] = strings.Split(field, ".")
	}
	return out
}

// fieldsNewerThan returns the fields that Kubernetes' types of a minor do not have.
func fieldsNewerThan(known int) (out [][]string) {
	for minor, fields := range newerFields {
		if minor > known {
			out = append(out, fields...)
		}
	}
	return out
}

// dropNewerFields removes fields that the control plane's Kubernetes types lack from lists of containers, which is the
// effect of decoding a template or the annotation proxy.istio.io/overrides into those types. Templates of 1.10 set
// the pod's restartPolicy on istio-init, a field to which Kubernetes later assigned another meaning. It modifies
// the containers.
func dropNewerFields(p *istio.Profile, lists ...[]any) {
	for _, field := range fieldsNewerThan(feature.KubernetesTypes(p.Release())) {
		for _, containers := range lists {
			dropPath(containers, field)
		}
	}
}

// withoutNewerFields returns a pod whose containers have no fields that the control plane's Kubernetes types lack. It
// does not modify the pod, and returns it unchanged if it has no such fields.
func withoutNewerFields(p *istio.Profile, seen *pod) *pod {
	if !slices.ContainsFunc(fieldsNewerThan(feature.KubernetesTypes(p.Release())), func(path []string) bool {
		return hasPath(seen.specListMaps(containersKey), path) || hasPath(seen.specListMaps(initContainersKey), path)
	}) {
		return seen
	}
	out := seen.deepCopy()
	dropNewerFields(p, out.specListMaps(containersKey), out.specListMaps(initContainersKey))
	return out
}

// hasPath reports whether a value has a field, and where it is a list whether one of its elements has it.
func hasPath(v any, path []string) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return hasPath(e, path) })
	case map[string]any:
		sub, there := v[path[0]]
		return there && (len(path) == 1 || hasPath(sub, path[1:]))
	}
	return false
}

// dropPath removes a field from a value, or from each element if the value is a list.
func dropPath(v any, path []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			dropPath(e, path)
		}
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		dropPath(v[path[0]], path[1:])
	}
}
