// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package promotion decides when what waits for a review goes on: which pull requests Prerig merges and when, which wave of a change
// comes next, what is on hold, and what is rolled back.
//
// What is decided follows from what is known (decide.go), which is data in and data out, and reads no clock. Everything else asks for
// what is known (observe.go) and does what was decided (promoter.go). A decision is stored before it is done, and what was done is
// found again at the host or on the branch, so that who is killed in between does nothing twice.
package promotion
