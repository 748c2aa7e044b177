// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package run takes a pipeline from its source to what is published: it fetches, decides whether anything that matters has
// changed, renders in a process of its own, asks the gates, publishes and records what became of it. A run that is
// interrupted at any point can be done again: nothing is published twice, as equal content is no change.
//
// No pipeline is to hold up another: a render that takes long has to leave its place to those that do not (build.Limited),
// and a commit that several pipelines share does not wait for one that does not come to its end (publish.Targets).
package run
