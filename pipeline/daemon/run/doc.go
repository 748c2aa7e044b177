// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package run processes a pipeline from its source to its published output: it fetches, decides whether any
// relevant input has changed, renders in a separate process, asks the gates, publishes and records the outcome. A
// run that is interrupted at any point can be repeated: it publishes no content twice, because equal content is no
// change.
//
// No pipeline may hold up another: a long render has to yield its slot to short ones (build.Limited), and a commit
// that several pipelines share does not wait for one that does not finish (publish.Targets).
package run
