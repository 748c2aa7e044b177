// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate describes a check of objects against what an API server refuses: the rules with their severities, the options, and the
// objects with their places. The check itself is in package apiserver, which is linked into the renderer only.
package gate
