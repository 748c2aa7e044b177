// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"os"
	"testing"

	"github.com/prerig/prerig/pipeline/render"
)

// TestIsolation asks a real renderer what it is kept from, with and without namespaces.
func TestIsolation(t *testing.T) {
	for name, options := range map[string]render.Options{"as it is": {Warm: 1}, "without namespaces": {NoSandbox: true}} {
		got, err := pool(t, options).Isolation(ctx)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Logf("%s: %s", name, got)
		if options.NoSandbox && got.Namespaces {
			t.Errorf("%s: %s", name, got)
		}
		if got.Network() != (got.Namespaces || got.Seccomp) || (got.String() == "none") != (got == render.Isolation{}) || len(got.Layers()) != 4 {
			t.Errorf("%s: %+v is told as %s", name, got, got)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"garbage", "silent", "endless"} {
		if got, err := pool(t, render.Options{Command: []string{self, bad}}).Isolation(ctx); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}
