// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"maps"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

const (
	// collectorKind is the kind from which OpenTelemetry's operator makes sidecars.
	collectorKind = "OpenTelemetryCollector"
	// collectorSidecar is the built-in sidecar that makes the operator's pods of these objects.
	collectorSidecar = "opentelemetry-sidecar"
	// collectorVersion is the version of the objects that the sidecar reads.
	collectorVersion = "opentelemetry.io/v1beta1"
)

// findCollectors returns the objects that are made into sidecars, as a policy has them: without what the cluster adds.
func (b *policyBuilder) findCollectors(all []*clusterObject) []any {
	var found []any
	for _, o := range all {
		version := textAt(o.Value, "apiVersion")
		if o.kind != collectorKind || !strings.HasPrefix(version, "opentelemetry.io/") || textAt(o.Value, "spec", "mode") != "sidecar" {
			continue
		}
		if version != collectorVersion {
			b.addWarning("%s is left out: its apiVersion is %s; take it as %s: kubectl get opentelemetrycollectors.v1beta1.opentelemetry.io -A -o yaml",
				o, version, collectorVersion)
			continue
		}
		meta := map[string]any{"name": o.name}
		if o.namespace != "" {
			meta["namespace"] = o.namespace
		}
		spec, _ := o.Value["spec"].(map[string]any)
		found = append(found, map[string]any{"apiVersion": version, "kind": collectorKind, "metadata": meta, "spec": maps.Clone(spec)})
	}
	return found
}

// setCollectors adds the sidecar for the objects, where there are any.
func (b *policyBuilder) setCollectors(collectors []any) {
	if len(collectors) == 0 {
		return
	}
	b.spec.Sidecars = append(b.spec.Sidecars, v1alpha1.Sidecar{BuiltIn: collectorSidecar, Values: map[string]any{"collectors": collectors}})
	b.origins = append(b.origins, countText(len(collectors), collectorKind))
	b.addNote("values.image of the sidecar %s is that of the operator 0.148.0, for collectors that name none, and values.native is true, as for "+
		"Kubernetes 1.29 and later: set them as your operator has them", collectorSidecar)
}
