// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package reference finds what a build needs from outside of its source, before the build: remote bases of kustomizations, and charts
// of repositories. The process that has credentials and a network calls it, and the renderer reads kustomizations with it, so that
// both see the same.
package reference
