// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package dryrun renders pipelines without a daemon and without publishing: to inspect a result, to compare it with
// what is published, and to find the pipelines that a range of commits touches. It performs the same steps as the
// daemon.
//
// # Comparing
//
// A result is compared with every place of spec.publish: the branch, for a proposal the active branch, the artifact
// at the first tag. Differences that objects have in common are shown once, as package group finds them.
//
// Files that a pipeline owns on a branch at a path that it no longer publishes to are deleted by its next run, and
// the comparison reports that. A branch or artifact that is no longer in spec.publish is not inspected: only the
// daemon's state records that the pipeline has published to it.
//
// A Comparison is complete; Text and Markdown shorten it and report what they omitted.
package dryrun
