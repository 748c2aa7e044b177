// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which pipelines run: after an event, after a change of the pipelines themselves, and
// periodically. It polls each source once, compares it with the input of the last render of each pipeline, and
// requests a run of only those whose input differs. It neither renders nor publishes.
package plan
