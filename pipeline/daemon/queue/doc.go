// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue keeps the data that must not be lost: the log of events, the work that follows from them, locks
// between workers, and the state of pipelines. All of it is stored in NATS JetStream, either a server inside the
// process with its files in a directory, or any NATS cluster by URL; the code is the same.
//
// A cluster that has lost a node elects a new leader for each stream led by that node within ten seconds. Until
// then an event is submitted repeatedly, so that its sender mostly does not notice, and so are all requests needed
// at the start.
//
// The work queue holds the newest job of each pipeline: a job that was not started is replaced by a later one for
// the same pipeline. A started job stays until it is done, so that it is repeated after a crash at any moment.
package queue
