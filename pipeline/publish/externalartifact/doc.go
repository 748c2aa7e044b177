// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package externalartifact manages what Flux fetches from the daemon itself: archives in a directory, served over
// HTTP to clients that know their names, and the objects of kind ExternalArtifact in a cluster that name the
// current archive (Flux' RFC-0012).
//
// The object is the only record of what is current. An archive is written before the object names it, and is
// removed only after the API server has reported for as long as Keeper.Grace that no object names it: so a crash
// leaves at most an unused archive.
package externalartifact
