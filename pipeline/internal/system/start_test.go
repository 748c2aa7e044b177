// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/render"
)

// TestAStartThatFailsLeavesNoAddressOpen has the last of the addresses fail. After a full disk the daemon starts again by
// itself, in the same process: what an attempt leaves open would keep all further ones from ever listening.
func TestAStartThatFailsLeavesNoAddressOpen(t *testing.T) {
	f := prepareAlone(t, nil)
	f.c.State = filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	for _, address := range []*string{&f.c.Listen, &f.c.Admin.Listen} {
		*address = free(t)
	}
	err := daemon.Serve(t.Context(), f.c, daemon.Options{Version: "test", Render: render.Options{Command: renderer(t)}})
	if err == nil || !strings.Contains(err.Error(), "--state") || !strings.Contains(err.Error(), "path has") {
		t.Fatalf("got %v, want that the path of the socket is too long", err)
	}
	for _, address := range []string{f.c.Listen, f.c.Admin.Listen} {
		var l net.Listener
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if l, err = net.Listen("tcp", address); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("%s is not free again: %v", address, err)
			continue
		}
		l.Close()
	}
}
