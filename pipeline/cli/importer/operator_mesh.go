// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"reflect"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/podmap"
)

// setMesh writes the mesh config that the chart makes of the values (templates/configmap.yaml), where it is not that of
// the built-in policy. Its default telemetry providers are not part of it: pods do not depend on them.
func (o *operatorBuilder) setMesh() error {
	var own map[string]any
	if err := yaml.Unmarshal([]byte(o.base.MeshConfig), &own); err != nil {
		return fmt.Errorf("reading the mesh config of the built-in policy: %w", err)
	}
	mesh := mergedValues(o.chartMesh(), mapOf(o.values["meshConfig"]))
	if reflect.DeepEqual(mesh, own) {
		return nil
	}
	text, err := yaml.Marshal(mesh)
	if err != nil {
		return fmt.Errorf("importing %s: writing the mesh config: %w", o.object, err)
	}
	o.spec.Istio.MeshConfig = string(text)
	return nil
}

// chartMesh is what the chart writes before the mesh config of the values.
func (o *operatorBuilder) chartMesh() map[string]any {
	config := map[string]any{"discoveryAddress": o.discoveryAddress()}
	if id := firstText(podmap.ValueAt(o.values, "global", "meshID")); id != "" {
		config["meshId"] = id
	}
	if variant := firstText(podmap.ValueAt(o.values, "global", "proxy", "variant"), podmap.ValueAt(o.values, "global", "variant")); variant != "" {
		config["image"] = map[string]any{"imageType": variant}
	}
	if firstText(podmap.ValueAt(o.values, "global", "proxy", "tracer")) == "zipkin" {
		address := firstText(podmap.ValueAt(o.values, "global", "tracer", "zipkin", "address"),
			"zipkin."+o.controlPlaneNamespace()+":9411")
		config["tracing"] = map[string]any{"zipkin": map[string]any{"address": address}}
	}
	return map[string]any{
		"trustDomain": "cluster.local", "rootNamespace": o.controlPlaneNamespace(), "enablePrometheusMerge": true,
		"defaultConfig": config,
	}
}

// discoveryAddress is where proxies find the control plane.
func (o *operatorBuilder) discoveryAddress() string {
	service := "istiod"
	if firstText(podmap.ValueAt(o.values, "global", "remotePilotAddress")) == "" {
		service += revisionSuffix(firstText(o.values["revision"]))
	}
	return service + "." + o.controlPlaneNamespace() + ".svc:15012"
}
