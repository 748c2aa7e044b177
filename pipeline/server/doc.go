// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package server is the daemon's HTTP server: public webhooks and health checks, and for authorised users the web
// page, the metrics, and an API to request runs. Pages contain no script and load no resources from other origins.
package server
