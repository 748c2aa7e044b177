// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render/gate"
)

// TestAMissingValidationIsLoggedOnce starts a daemon beside which there is no program that validates.
func TestAMissingValidationIsLoggedOnce(t *testing.T) {
	f := prepare(t, nil)
	logs, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	f.logs = logs
	f.start()
	f.stop()
	text, err := os.ReadFile(logs.Name())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), gate.NotInstalled); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, text)
	}
}
