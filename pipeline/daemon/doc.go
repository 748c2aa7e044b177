// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package daemon puts the parts together that receive events, plan and run: all of them in one process, or workers alone in
// any number of further ones.
package daemon
