// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package guilty

import (
	_ "net/http"
	system "os"
	"path/filepath"
	. "time"
	clock "time"

	_ "math/rand/v2"
)

func guilty() {
	_ = system.Getenv("HOME")
	_, _ = system.ReadFile("/etc/passwd")
	_, _ = filepath.Glob("*")
	_ = clock.Now()
	_ = Second
}
