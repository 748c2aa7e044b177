// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package opentelemetry reproduces what OpenTelemetry's operator 0.148.0 does to pods. It reads the configuration
// of a collector, fills in the defaults of the operator's webhook, and returns the ports, probe and variables that
// the operator derives from it for the collector's container (apis/v1beta1/config.go, internal/components and
// internal/manifests/collector/container.go in the operator); and it makes the changes of auto-instrumentation
// (internal/instrumentation in the operator).
package opentelemetry
