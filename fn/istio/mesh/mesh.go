// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package mesh holds Istio's mesh configuration and its part for a single proxy, as the injection templates of
// every Istio version since 1.0 see them.
//
// One Go model serves all versions: it has every field that ever existed (schema.txt), under the names of the
// generated protobuf structs, with nil-safe getters. MeshConfig and ProxyConfig have one for each field, most of which
// only templates call, by name: a user's template may call any of them. What differs by version - built-in defaults,
// merge rules, the type of a field, which defaults are left out of the JSON - follows the release that a configuration
// is made for. The package reads only its arguments, and no function modifies them.
package mesh

//go:generate go run ./gen

import (
	"strconv"
	"time"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

// Duration is a protobuf duration.
type Duration struct {
	// Seconds and Nanos have the same sign.
	Seconds int64 `json:"seconds,omitempty"`
	Nanos   int32 `json:"nanos,omitempty"`
}

// NewDuration returns d as a protobuf duration.
func NewDuration(d time.Duration) *Duration {
	return &Duration{Seconds: int64(d / time.Second), Nanos: int32(d % time.Second)}
}

// AsDuration returns the duration; zero for nil.
func (d *Duration) AsDuration() time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(d.Seconds)*time.Second + time.Duration(d.Nanos)
}

// GetSeconds returns the whole seconds.
func (d *Duration) GetSeconds() int64 {
	if d == nil {
		return 0
	}
	return d.Seconds
}

// GetNanos returns the rest in nanoseconds.
func (d *Duration) GetNanos() int32 {
	if d == nil {
		return 0
	}
	return d.Nanos
}

// BoolValue is a bool that may be unset (nil).
type BoolValue struct {
	Value bool `json:"value,omitempty"`
}

// GetValue returns the value; false for nil.
func (v *BoolValue) GetValue() bool { return v != nil && v.Value }

// Int32Value is an int32 that may be unset (nil).
type Int32Value struct {
	Value int32 `json:"value,omitempty"`
}

// GetValue returns the value; 0 for nil.
func (v *Int32Value) GetValue() int32 {
	if v == nil {
		return 0
	}
	return v.Value
}

// UInt32Value is a uint32 that may be unset (nil).
type UInt32Value struct {
	Value uint32 `json:"value,omitempty"`
}

// GetValue returns the value; 0 for nil.
func (v *UInt32Value) GetValue() uint32 {
	if v == nil {
		return 0
	}
	return v.Value
}

// Int64Value is an int64 that may be unset (nil).
type Int64Value struct {
	Value int64 `json:"value,omitempty"`
}

// GetValue returns the value; 0 for nil.
func (v *Int64Value) GetValue() int64 {
	if v == nil {
		return 0
	}
	return v.Value
}

// Struct is a free-form JSON object.
type Struct map[string]any

// enumNames lists the values of an enumeration in the order of its declaration.
type enumNames []struct {
	value int32
	name  string
}

func (n enumNames) nameOfValue(value int32) string {
	for _, e := range n {
		if e.value == value {
			return e.name
		}
	}
	return strconv.Itoa(int(value))
}

func (n enumNames) valueOfName(name string) (int32, bool) {
	for _, e := range n {
		if e.name == name {
			return e.value, true
		}
	}
	return 0, false
}

// enum is any enumeration of the model.
type enum interface{ names() enumNames }

// view is the release that a configuration is made for.
type view struct{ release release.Release }

// Minor is the minor version of Istio 1.x that the configuration is made for.
func (v view) Minor() int { return v.release.Minor }

// Concurrency returns the number of worker threads as templates of the version expect it: an int32 up to 1.6, later an
// *Int32Value, nil when unset.
func (m *ProxyConfig) Concurrency() any {
	if feature.In(m.release, feature.ConcurrencyIsNumber) {
		return m.Workers.GetValue()
	}
	return m.Workers
}

// GetConcurrency is Concurrency, safe on nil.
func (m *ProxyConfig) GetConcurrency() any {
	if m == nil {
		return (*Int32Value)(nil)
	}
	return m.Concurrency()
}

// ServiceCluster returns the name of the service cluster; empty when unset or when the proxy's name follows
// TracingServiceName. It is a field up to 1.12 and a member of the oneof ClusterName from 1.13.
func (m *ProxyConfig) ServiceCluster() string { return m.GetServiceCluster() }

// GetServiceCluster is ServiceCluster, safe on nil.
func (m *ProxyConfig) GetServiceCluster() string {
	if m == nil || m.Cluster == nil {
		return ""
	}
	return *m.Cluster
}

// ClusterName represents the oneof of the same name: its members are fields of the result.
func (m *ProxyConfig) ClusterName() *ProxyConfig { return m }

// GetClusterName is ClusterName.
func (m *ProxyConfig) GetClusterName() *ProxyConfig { return m }

// GetTracer represents the oneof of the same name: its members are fields of the result.
func (m *Tracing) GetTracer() *Tracing { return m }
