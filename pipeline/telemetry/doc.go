// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry measures: Prometheus metrics of deliveries, runs and the queue, and OpenTelemetry traces where a
// collector is configured. It sends nothing anywhere without one.
package telemetry
