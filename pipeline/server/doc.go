// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package server is the daemon's HTTP: webhooks and health checks for everybody, and for those who may, the web page, the
// metrics, and an API with which runs are asked for. Pages hold no script and load nothing from elsewhere.
package server
