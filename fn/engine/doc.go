// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine applies policies to documents: it reads what they tell about their cluster, takes earlier injections out of each
// pod template, decides, injects, and writes what has changed.
//
// Package fn is the way in for programs.
package engine
