// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package dryrun renders pipelines without a daemon and without publishing anything: for looking at a result, for comparing
// it with what is published, and for finding out which pipelines a range of commits touches. It takes the same steps as the
// daemon.
//
// # Comparing
//
// A result is compared with every place of spec.publish: the branch, for a proposal the active branch, the artifact at the
// first tag. Differences that objects have in common are told once, as package group finds them.
//
// What a pipeline owns on a branch at a path that it no longer publishes to is deleted by its next run, and the comparison
// says so. A branch or artifact that is no longer in spec.publish is not looked at: that the pipeline has published there,
// only the daemon's state knows.
//
// Nothing is left out of a Comparison; Text and Markdown shorten and say what they left out.
package dryrun
