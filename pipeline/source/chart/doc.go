// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart brings charts out of chart repositories, over HTTP as Helm does and from registries: the archive that a lock
// names by its digest, and for those who write locks the version that a range means. It opens no archive; the renderer does.
//
// What is contacted is the pipeline's to say. A lock, which is part of the source, names the URL of an archive, which is asked
// for only where it is on the repository's own server or where the repository's index has it.
package chart
