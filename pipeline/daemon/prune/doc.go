// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package prune notices pipelines that were removed from their origin, and decides when their output may be
// removed. It registers the declarations of every pipeline, so that they are known after its file is removed. A
// pipeline must be missing for a while, and no removal is automatic if it may be a mistake: while any part of the
// catalog cannot be read, when no pipeline is left, or when too many disappear at once. It does not remove the
// output itself; that is a job of a worker.
package prune
