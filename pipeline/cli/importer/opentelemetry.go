// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"maps"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
)

const (
	// instrumentationKind is the kind by which OpenTelemetry's operator instruments pods, instrumentationSidecar the
	// built-in sidecar that does the same, and instrumentationVersion the version of the objects that it reads.
	instrumentationKind    = "Instrumentation"
	instrumentationSidecar = "opentelemetry-instrumentation"
	instrumentationVersion = "opentelemetry.io/v1alpha1"
	// collectorKind is the kind from which OpenTelemetry's operator makes sidecars.
	collectorKind = "OpenTelemetryCollector"
	// collectorSidecar is the built-in sidecar that makes the operator's pods of these objects.
	collectorSidecar = "opentelemetry-sidecar"
	// collectorVersion is the version of the objects that the sidecar reads.
	collectorVersion = "opentelemetry.io/v1beta1"
)

// findCollectors returns the objects that are made into sidecars.
func (r *sidecarReader) findCollectors(all []*clusterObject) []any {
	var found []any
	for _, o := range all {
		version := podmap.TextAt(o.Value, "apiVersion")
		if o.kind != collectorKind || !strings.HasPrefix(version, "opentelemetry.io/") ||
			podmap.TextAt(o.Value, "spec", "mode") != "sidecar" {
			continue
		}
		if version != collectorVersion {
			r.addWarning("%s is skipped: its apiVersion is %s; read it as %s: kubectl get opentelemetrycollectors.v1beta1.opentelemetry.io -A -o yaml",
				o, version, collectorVersion)
			continue
		}
		found = append(found, reducedObject(o))
	}
	return found
}

// reducedObject is an object as a policy has it: without what the cluster adds.
func reducedObject(o *clusterObject) map[string]any {
	meta := map[string]any{"name": o.name}
	if o.namespace != "" {
		meta["namespace"] = o.namespace
	}
	spec, _ := o.Value["spec"].(map[string]any)
	return map[string]any{"apiVersion": podmap.TextAt(o.Value, "apiVersion"), "kind": o.kind, "metadata": meta,
		"spec": maps.Clone(spec)}
}

// findInstrumentations returns the objects by which pods are instrumented.
func (r *sidecarReader) findInstrumentations(all []*clusterObject) []any {
	var found []any
	for _, o := range all {
		version := podmap.TextAt(o.Value, "apiVersion")
		if o.kind != instrumentationKind || !strings.HasPrefix(version, "opentelemetry.io/") {
			continue
		}
		if version != instrumentationVersion {
			r.addWarning("%s is skipped: its apiVersion is %s; read it as %s", o, version, instrumentationVersion)
			continue
		}
		found = append(found, reducedObject(o))
	}
	return found
}

// setInstrumentations adds the sidecar for the objects, if any.
func (r *sidecarReader) setInstrumentations(objects []any) {
	if len(objects) == 0 {
		return
	}
	r.sidecars = append(r.sidecars, v1alpha1.Sidecar{BuiltIn: instrumentationSidecar, Values: map[string]any{"instrumentations": objects}})
	r.origins = append(r.origins, countText(len(objects), instrumentationKind))
	r.addNote("values.images of the sidecar %s are those of the operator 0.148.0, for objects that set none: set them to those of your operator",
		instrumentationSidecar)
}

// setCollectors adds the sidecar for the objects, if any.
func (r *sidecarReader) setCollectors(collectors []any) {
	if len(collectors) == 0 {
		return
	}
	r.sidecars = append(r.sidecars, v1alpha1.Sidecar{BuiltIn: collectorSidecar, Values: map[string]any{"collectors": collectors}})
	r.origins = append(r.origins, countText(len(collectors), collectorKind))
	r.addNote("values.image of the sidecar %s is that of the operator 0.148.0, for collectors that set none, and values.native is true, as for "+
		"Kubernetes 1.29 and later: set them to those of your operator", collectorSidecar)
}
