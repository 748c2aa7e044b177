// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry provides Prometheus metrics of deliveries, runs and the queue, and OpenTelemetry traces if a
// collector is configured. It sends no data without one.
package telemetry
