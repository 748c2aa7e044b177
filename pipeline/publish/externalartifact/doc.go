// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package externalartifact keeps what Flux takes from the daemon itself: archives in a directory, which it serves over HTTP to whoever
// knows their names, and the objects of kind ExternalArtifact in a cluster that say which archive is the current one (Flux' RFC-0012).
//
// The object is the only record of what is current. An archive is written before the object names it, and is removed only when the API
// server has said for as long as Keeper.Grace that no object names it: so a crash leaves at most an archive that nobody asks for.
package externalartifact
