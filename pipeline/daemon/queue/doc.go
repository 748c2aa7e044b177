// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue keeps what must not be lost: the log of events, the work that follows from them, locks between workers, and
// the state of pipelines. All of it lives in NATS JetStream, either a server inside the process with its files in a
// directory, or any NATS cluster by URL; the code is the same.
//
// A cluster that has lost a node gives each stream whose leader that was another one within ten seconds. Until then an event
// is offered again and again, so that its sender mostly sees nothing of it, and so is everything that is needed at the start.
//
// The work queue holds the newest job of each pipeline: a job that was not begun is replaced by a later one for the same
// pipeline. A job that was begun stays until it is done, so that a crash at any moment leads to its being done again.
package queue
