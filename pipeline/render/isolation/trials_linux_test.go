// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOneFailedStartLeavesNamespacesOn: programs do without for good only where the system refuses namespaces, and nothing else.
func TestOneFailedStartLeavesNamespacesOn(t *testing.T) {
	t.Parallel()
	var told []string
	var with, without error // that a launch fails with
	var n *Trials
	for _, step := range []struct {
		name          string
		with, without error
		later         bool // so much that a refusal may have passed
		apart, fails  bool
		told          string
	}{
		{name: "both fail", with: unix.EACCES, without: unix.EACCES, fails: true},
		{name: "as it should be", apart: true},
		{name: "another error", with: unix.EAGAIN, fails: true},
		{name: "there are too many", with: unix.ENOSPC, told: "false no space left on device"},
		{name: "there is room, but not long after", apart: false},
		{name: "later there is none", with: unix.ENOSPC, later: true},
		{name: "later there is", later: true, apart: true, told: "true <nil>"},
		{name: "no permission for good, and no renderer", with: unix.EPERM, without: unix.ENOENT, fails: true},
		{name: "no permission", with: unix.EPERM, told: "false operation not permitted"},
		{name: "nor later", later: true},
	} {
		if n == nil {
			n = &Trials{Told: func(have bool, err error) { told = append(told, fmt.Sprint(have, " ", err)) }}
		}
		told = nil
		with, without = step.with, step.without
		if step.later {
			n.again = time.Now()
		} else if n.refused {
			n.again = time.Now().Add(time.Hour)
		}
		apart, err := n.Start(func(namespaces bool) error {
			if namespaces {
				return with
			}
			return without
		})
		if (err != nil) != step.fails || err == nil && apart != step.apart {
			t.Errorf("%s: got %v, %v", step.name, apart, err)
		}
		if want := []string{step.told}; step.told != "" && !slices.Equal(told, want) || step.told == "" && told != nil {
			t.Errorf("%s: told %q, want %q", step.name, told, step.told)
		}
	}
	never := &Trials{Told: func(bool, error) { t.Error("told of what is so from the beginning") }}
	never.recordNamespacesRefused(unix.EPERM, true)
	if !never.isBackingOff() {
		t.Error("what is refused for good is tried again")
	}
}
