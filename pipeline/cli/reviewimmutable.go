// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// immutableFields are fields that the API server rejects a change of, or of a part of it (source: the functions ValidateUpdate of
// k8s.io/kubernetes/pkg/apis/*/validation).
var immutableFields = map[string][]string{
	"ConfigMap":             {"immutable"},
	"ClusterRoleBinding":    {"roleRef"},
	"DaemonSet":             {"spec.selector"},
	"Deployment":            {"spec.selector"},
	"Job":                   {"pod:", "spec"},
	"PersistentVolume":      {"spec"},
	"PersistentVolumeClaim": {"spec"},
	"Pod":                   {"pod:", "spec"},
	"PriorityClass":         {"preemptionPolicy", "value"},
	"ReplicaSet":            {"spec.selector"},
	"RoleBinding":           {"roleRef"},
	"RuntimeClass":          {"handler"},
	"Secret":                {"immutable", "type"},
	"Service":               {"spec.clusterIP", "spec.ipFamilies"},
	"StatefulSet":           {"spec.podManagementPolicy", "spec.selector", "spec.serviceName", "spec.volumeClaimTemplates"},
	"StorageClass":          {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"},
}

// mayBeImmutable reports whether a change can be of a field that no update changes.
func mayBeImmutable(change group.Change) bool {
	if change.Kind != group.Modified {
		return false
	}
	return slices.ContainsFunc(change.Objects, func(o group.Object) bool {
		kind, _, _ := strings.Cut(o.Name, " ")
		return slices.ContainsFunc(immutableFields[kind], func(field string) bool {
			return slices.ContainsFunc(change.Hunks, func(h group.Hunk) bool {
				return strings.HasPrefix(h.At, field) || h.At == "" || strings.HasPrefix(field, h.At+".")
			})
		})
	})
}
