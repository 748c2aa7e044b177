// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package artifact composes the ExternalArtifacts that Flux's ArtifactGenerators make of the files of other sources.
//
// Source: source-watcher 2.2 of Flux, internal/builder/builder.go, merge.go and internal/controller/artifactgenerator_pathpattern.go.
package artifact
