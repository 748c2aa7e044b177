// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package build renders pipelines from snapshots of their sources: it gathers the policies and the remote bases that a
// pipeline names, has a renderer do the rest, and finds out whether anything that the last render has seen is different.
//
// Limited shares the renderers out, so that no pipeline holds up another.
package build
