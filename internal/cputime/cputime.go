// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package cputime lets tests bound how much a process works, which other processes disturb less than the clock.
package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Used returns the processor time that the process has used, garbage collection and tests beside the caller included.
func Used(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Begin returns a function that fails the test if the process has used more than limit of processor time since Begin.
func Begin(t testing.TB) (end func(limit time.Duration)) {
	t.Helper()
	start := Used(t)
	return func(limit time.Duration) {
		t.Helper()
		if used := Used(t) - start; used > limit {
			t.Errorf("it took %s of the processor, more than %s", used, limit)
		}
	}
}
