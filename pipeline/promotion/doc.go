// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package promotion decides when results that wait for a review proceed: which pull requests Prerig merges and
// when, which wave of a change comes next, what is on hold, and what is rolled back.
//
// Decisions are derived from the observed state (decide.go) by pure functions that do not read the clock. The rest
// of the package reads the state (askers.go, units.go) and executes decisions (promoter.go). A decision is stored before
// it is executed, and its effect is found again at the host or on the branch, so that a killed process does not
// repeat it.
package promotion
