// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package prune notices pipelines that are gone from where they are read, and decides when what belongs to them may go. It
// registers what every pipeline says of itself, so that this is known when its file is not there any more. A pipeline must be
// missing for a while, and nothing happens by itself where it may be a mistake: while anything of the catalog cannot be
// read, when no pipeline is left, or when too many go at once. It removes nothing; that is a job of a worker.
package prune
