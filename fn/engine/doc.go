// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine applies policies to documents: it reads what they reveal about their cluster, removes earlier
// injections from each pod template, decides, injects, and writes what has changed.
//
// Package fn is the entry point for programs.
package engine
