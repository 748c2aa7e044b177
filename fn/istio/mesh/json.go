// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"reflect"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

// ProtoToJSON returns the output of the template function of that name in a release: the proto JSON of a message,
// "{}" for nil. From 1.6 it omits fields of a *ProxyConfig that have their default.
func ProtoToJSON(m any, r release.Release) (string, error) {
	v := reflect.ValueOf(m)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "{}", nil
	}
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || v.Type().Elem().PkgPath() != reflect.TypeFor[ProxyConfig]().PkgPath() {
		return "", fmt.Errorf("writing JSON: %T is not a message of the mesh config", m)
	}
	if _, ok := m.(Message); !ok {
		return "", fmt.Errorf("writing JSON: %T is not a message of the mesh config", m)
	}
	switch m.(type) {
	case *Duration, *BoolValue, *Int32Value, *UInt32Value, *Int64Value:
		e := encoder{}
		err := e.encodePointer(v)
		return e.out.String(), err
	}
	if pc, ok := m.(*ProxyConfig); ok && feature.In(r, feature.JSONWithoutDefaults) {
		v = reflect.ValueOf(cleanProxyConfig(pc, r))
	}
	e := encoder{keepEmpty: feature.In(r, feature.JSONKeepsEmpty)}
	if err := e.encodeMessage(v.Elem()); err != nil {
		return "", fmt.Errorf("writing JSON of %T: %w", m, err)
	}
	return e.out.String(), nil
}

// cleanProxyConfig returns pc without the fields that have the version's default. It is not every field: those that istiod compares
// (cleanProxyConfig in pkg/kube/inject).
func cleanProxyConfig(pc *ProxyConfig, r release.Release) *ProxyConfig {
	out := *pc
	def := DefaultProxyConfig(r)
	unsetDefault(&out.ConfigPath, def.ConfigPath)
	unsetDefault(&out.BinaryPath, def.BinaryPath)
	unsetDefault(&out.DiscoveryAddress, def.DiscoveryAddress)
	unsetDefault(&out.ProxyAdminPort, def.ProxyAdminPort)
	unsetDefault(&out.StatNameLength, def.StatNameLength)
	unsetDefault(&out.StatusPort, def.StatusPort)
	unsetMessage(&out.Cluster, def.Cluster)
	unsetMessage(&out.DrainDuration, def.DrainDuration)
	unsetMessage(&out.ParentShutdownDuration, def.ParentShutdownDuration)
	unsetMessage(&out.EnvoyMetricsService, def.EnvoyMetricsService)
	unsetMessage(&out.EnvoyAccessLogService, def.EnvoyAccessLogService)
	unsetMessage(&out.Tracing, def.Tracing)
	unsetMessage(&out.Workers, def.Workers)
	if feature.In(r, feature.ConcurrencyIsNumber) && out.Workers.GetValue() == 0 {
		out.Workers = nil // a plain zero
	}
	if feature.In(r, feature.JSONWithoutDrain) {
		unsetDefault(&out.ControlPlaneAuthPolicy, def.ControlPlaneAuthPolicy)
		unsetMessage(&out.TerminationDrainDuration, def.TerminationDrainDuration)
	}
	if feature.In(r, feature.JSONWithoutNoMetadata) && len(out.ProxyMetadata) == 0 {
		out.ProxyMetadata = nil
	}
	return &out
}

func unsetDefault[T comparable](field *T, def T) {
	if *field == def {
		var zero T
		*field = zero
	}
}

func unsetMessage[T any](field **T, def *T) {
	if def != nil && reflect.DeepEqual(*field, def) {
		*field = nil
	}
}
