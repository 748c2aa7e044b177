// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package preview renders pipelines without a daemon and without publishing anything: for looking at a result, for comparing
// it with what is published, and for finding out which pipelines a range of commits touches. It takes the same steps as the
// daemon.
//
// # Comparing
//
// A result is compared with every place of spec.publish: the branch, for a proposal the active branch, the artifact at the
// first tag. Files are taken apart into objects and each object's difference into runs of changed lines. Two runs are the
// same change where they have the same lines at the same fields; the position of a pod template in its object does not
// matter, nor what stands around the lines. Where lines hold values that are the object's own, such as its name, and more
// objects agree without them than with them, a placeholder stands for the value: <name>. A change that only one object has
// is always shown as it is. Runs that the same objects have are one Change.
//
// What a pipeline owns on a branch at a path that it no longer publishes to is deleted by its next run, and the comparison
// says so. A branch or artifact that is no longer in spec.publish is not looked at: that the pipeline has published there,
// only the daemon's state knows.
//
// Nothing is left out of a Comparison; Text and Markdown shorten and say what they left out.
package preview
